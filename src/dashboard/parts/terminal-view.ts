/** Makes terminals in the colours of the page. */
import "./adopted-styles.ts";
import { FitAddon } from "@xterm/addon-fit";
import { SearchAddon } from "@xterm/addon-search";
import { WebLinksAddon } from "@xterm/addon-web-links";
import { type ITerminalOptions, Terminal } from "@xterm/xterm";

export type TerminalView = { terminal: Terminal; fit: FitAddon; search: SearchAddon };

export function openTerminalView(
  parent: HTMLElement,
  options: ITerminalOptions = {},
): TerminalView {
  const terminal = new Terminal({
    fontFamily: "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace",
    fontSize: 13,
    scrollback: 20_000,
    theme: { background: "#10151c", foreground: "#dbe4ee" },
    // Search marks its hits by decorations, which are a proposed API.
    allowProposedApi: true,
    ...options,
  });
  const fit = new FitAddon();
  const search = new SearchAddon();
  terminal.loadAddon(fit);
  terminal.loadAddon(search);
  terminal.loadAddon(new WebLinksAddon(openLink));
  terminal.open(parent);
  fit.fit();
  return { terminal, fit, search };
}

/** Output can contain any link: only http is opened, and the new page cannot reach this one. */
function openLink(_event: MouseEvent, uri: string): void {
  if (/^https?:/i.test(uri)) open(uri, "_blank", "noopener,noreferrer");
}
