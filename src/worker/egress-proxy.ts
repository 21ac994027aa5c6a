/**
 * The proxy of sandboxes with a list of hosts: that of the package, but a refusal is 403 with JSON that names the list and
 * the remedy. The package answers 520, which programs take for a fault of the host and retry.
 */
import { ContainerProxy as PackageProxy } from "@cloudflare/containers";

/** What the package answers for a host that a list refuses. */
const refusal = { status: 520, text: "Origin is disallowed" } as const;

export class ContainerProxy extends PackageProxy {
  override async fetch(request: Request): Promise<Response> {
    const response = await super.fetch(request);
    if (response.status !== refusal.status) return response;
    const text = await response.clone().text();
    if (text !== refusal.text) return response;
    const { hostname } = new URL(request.url);
    const { deniedHosts = [] } = (this.ctx as unknown as { props: { deniedHosts?: string[] } })
      .props;
    const field = deniedHosts.length > 0 ? "network.allow or network.deny" : "network.allow";
    const message = `The sandbox may not reach ${hostname}: ${field} does not let it.`;
    const hint = "Create a sandbox whose `network` allows this host, or ask its creator.";
    return Response.json(
      { error: { code: "forbidden", message, hint, host: hostname } },
      { status: 403 },
    );
  }
}
