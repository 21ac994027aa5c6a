/**
 * Owns holding a sandbox of the platform to its list of hosts: all its HTTP and HTTPS passes `ContainerProxy`, and
 * nothing else leaves. Does not own what the proxy does with a request, nor sandboxes without a list.
 */
import { BerthError } from "../protocol/errors.ts";
import type { Network } from "../protocol/sandbox.ts";

type Attached = NonNullable<DurableObjectState["container"]>;

/** Of `ContainerProxy`, as its package reads them. */
type ProxyProps = {
  enableInternet: boolean;
  containerId: string;
  className: string;
  allowedHosts?: string[] | undefined;
  deniedHosts?: string[] | undefined;
  /** Every host comes by it, not only those that it has a handler for. */
  interceptAll: true;
};

type Exports = { ContainerProxy?: (options: { props: ProxyProps }) => Fetcher };

export type Egress = {
  /** Whether the container may reach the internet by itself, besides what passes the proxy. */
  direct: boolean;
  /** What commands need so that they trust the proxy, which answers HTTPS in the name of each host. */
  env: Record<string, string>;
  /** Before a start, and once for each instance of the object that finds a container running. */
  apply(): Promise<void>;
};

/** Where the platform puts the certificate by which the proxy speaks for each host. */
const certificate = "/etc/cloudflare/certs/cloudflare-containers-ca.crt";
/** What curl, git, OpenSSL, Python and Node look for. All HTTPS has this one issuer, so it may stand alone. */
const trustVariables = [
  ...["SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE"],
  "NODE_EXTRA_CA_CERTS",
];

export function egressOf(
  attached: Attached,
  network: Network,
  { exports, id }: { exports: unknown; id: DurableObjectId },
): Egress {
  const { internet, allow, deny } = network;
  if (allow === undefined && deny === undefined) {
    return { direct: internet, env: {}, apply: async () => undefined };
  }
  let applied: Promise<void> | undefined;
  const apply = async () => {
    const proxy = proxyOf(exports, {
      enableInternet: true,
      containerId: id.toString(),
      className: "SandboxObject",
      allowedHosts: allow,
      deniedHosts: deny,
      interceptAll: true,
    });
    await attached.interceptOutboundHttps("*", proxy);
    await attached.interceptAllOutboundHttp(proxy);
  };
  return {
    direct: false,
    env: Object.fromEntries(trustVariables.map((name) => [name, certificate])),
    apply() {
      applied ??= apply().catch((error: unknown) => {
        applied = undefined;
        throw error;
      });
      return applied;
    },
  };
}

function proxyOf(exports: unknown, props: ProxyProps): Fetcher {
  const { ContainerProxy } = exports as Exports;
  if (ContainerProxy !== undefined) return ContainerProxy({ props });
  throw new BerthError("unsupported", "network: the Worker has no egress proxy to hold hosts to.", {
    hint: "Export ContainerProxy from the Worker's entry, or leave allow and deny out.",
    facts: { field: "network" },
  });
}
