/**
 * Restricts a sandbox of the platform to its list of hosts: all its HTTP and HTTPS passes through `ContainerProxy`,
 * and nothing else leaves. Sandboxes without a list are not restricted.
 */

import { BerthError } from "../protocol/errors.ts";
import { callbackHost } from "../protocol/internal/agent-wire.ts";
import type { Network } from "../protocol/sandbox.ts";

type Attached = NonNullable<DurableObjectState["container"]>;

/** The props of `ContainerProxy`, as its package defines them. */
type ProxyProps = {
  enableInternet: boolean;
  containerId: string;
  className: string;
  allowedHosts?: string[] | undefined;
  deniedHosts?: string[] | undefined;
  /** Intercepts every host, not only those with a handler. */
  interceptAll: true;
};

type Exports = {
  ContainerProxy?: (options: { props: ProxyProps }) => Fetcher;
  AgentCallback?: (options: { props: { id: string } }) => Fetcher;
};

export type Egress = {
  /** Whether the container may reach the internet without the proxy. */
  direct: boolean;
  /** Where the agent reaches its object; undefined: nowhere. */
  callbackUrl: string | undefined;
  /** Variables that make commands trust the proxy, which terminates HTTPS for every host. */
  env: Record<string, string>;
  /** Call it before a start, and once per instance of the object that finds a container running. */
  apply(): Promise<void>;
  /** Call it when a container ends: the platform's interceptions end with it. */
  forget(): void;
};

/** Where the platform puts the proxy's CA certificate. */
const certificate = "/etc/cloudflare/certs/cloudflare-containers-ca.crt";
/** Read by curl, git, OpenSSL, Python and Node. All HTTPS has this one issuer, so no other CA is needed. */
const trustVariables = [
  ...["SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE"],
  "NODE_EXTRA_CA_CERTS",
];

export function egressOf(
  attached: Attached,
  network: Network,
  { exports, id }: { exports: unknown; id: DurableObjectId },
  sandboxId: string,
): Egress {
  const { internet, allow, deny } = network;
  const isOpen = allow === undefined && deny === undefined;
  const { AgentCallback } = (exports ?? {}) as Exports;
  let applied: Promise<void> | undefined;
  const interceptCallback = async () => {
    const props = { id: sandboxId };
    if (AgentCallback !== undefined)
      await attached.interceptOutboundHttp(callbackHost, AgentCallback({ props }));
  };
  const apply = async () => {
    if (isOpen) return interceptCallback();
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
    await interceptCallback();
  };
  return {
    direct: isOpen && internet,
    callbackUrl: AgentCallback === undefined ? undefined : `http://${callbackHost}`,
    env: isOpen ? {} : Object.fromEntries(trustVariables.map((name) => [name, certificate])),
    apply() {
      applied ??= apply().catch((error: unknown) => {
        applied = undefined;
        throw error;
      });
      return applied;
    },
    forget() {
      applied = undefined;
    },
  };
}

function proxyOf(exports: unknown, props: ProxyProps): Fetcher {
  const { ContainerProxy } = exports as Exports;
  if (ContainerProxy !== undefined) return ContainerProxy({ props });
  throw new BerthError(
    "unsupported",
    "network: The Worker has no egress proxy to restrict hosts.",
    {
      hint: "Export ContainerProxy from the Worker's entry, or leave allow and deny out.",
      facts: { field: "network" },
    },
  );
}
