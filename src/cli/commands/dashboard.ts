/** `berth dashboard`: prints a link that signs a browser in. */
import { command } from "../command.ts";

export const dashboardCommand = command({
  name: "dashboard",
  summary: "Print a link to the dashboard that signs you in",
  group: "Server",
  about:
    "The link works once, within a minute. What the browser may do is what your key may do; it stays signed in for 12 hours.",
  args: {},
  options: {},
  examples: [
    ["A link to click on", "berth dashboard"],
    ["In a browser", 'xdg-open "$(berth dashboard)"'],
  ],
  async run({ berth, server, output, json }) {
    const { ticket, expiresAt } = await berth.createSignIn();
    const url = `${server.url}/#ticket=${ticket}`;
    if (json) output.printJson({ url, expiresAt });
    else output.print(url);
  },
});
