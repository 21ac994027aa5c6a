/** Lists of hosts on the platform: what is asked of it, and what its proxy then does with requests of a sandbox. */
import { afterEach, describe, expect, it, vi } from "vitest";
import { agentHeaders } from "../../../src/protocol/internal/agent.ts";
import type { Network } from "../../../src/protocol/sandbox.ts";
import { chooseRuntime } from "../../../src/runtime/choose.ts";
import { ContainerProxy } from "../../../src/worker/egress-proxy.ts";

type Options = { enableInternet?: boolean; env?: Record<string, string> };
type Egress = { fetch(request: Request): Promise<Response> };

const startId = "abcdefgh01234567";
const incarnation = `${startId}.x`;
const health = { incarnation, protocol: 1, tree: "cgroup", running: 0, fence: 0 };

/** The platform's side, as its documentation has it: what is intercepted before a start holds for it. */
class Attached {
  running = false;
  readonly images = { default: "image" };
  readonly order: string[] = [];
  started: Options | undefined;
  http: Egress | undefined;
  https: Egress | undefined;

  start(options: Options): void {
    this.order.push("start");
    this.started = options;
    this.running = true;
  }
  async setInactivityTimeout(): Promise<void> {}
  /** As its agent got it. */
  environment: Record<string, string> = {};
  async interceptAllOutboundHttp(egress: Egress): Promise<void> {
    this.order.push("http");
    this.http = egress;
  }
  async interceptOutboundHttps(address: string, egress: Egress): Promise<void> {
    this.order.push(`https ${address}`);
    this.https = egress;
  }
  getTcpPort() {
    return {
      fetch: async (request: Request) => {
        if (request.method === "PUT")
          this.environment = ((await request.json()) as { env: Record<string, string> }).env;
        if (!this.running) throw new Error("the container is not running");
        return Response.json(health, { headers: { [agentHeaders.incarnation]: incarnation } });
      },
    };
  }
}

const open = (attached: Attached, network: Network) => {
  const proxy = ({ props }: { props: object }) =>
    new ContainerProxy({ props } as never, {} as never);
  const host = { container: attached, exports: { ContainerProxy: proxy }, id: "object" };
  return chooseRuntime(host as never, undefined, `a${"0".repeat(23)}`, network);
};

const start = (attached: Attached, network: Network) =>
  open(attached, network).start({ startId, secret: "s".repeat(32), env: { A: "1" }, network });

const statusOf = async (egress: Egress | undefined, url: string) =>
  (await egress?.fetch(new Request(url)))?.status;

afterEach(() => vi.unstubAllGlobals());

describe("lists of hosts on the platform", () => {
  it("[NW6] all HTTP and HTTPS passes the proxy before anything runs, and no other way out is open", async () => {
    const attached = new Attached();
    expect(open(attached, { internet: true }).filtersHosts).toBe(true);
    await start(attached, { internet: true, allow: ["*.example.com"] });
    expect(attached.order).toEqual(["https *", "http", "start"]);
    expect(attached.started?.enableInternet).toBe(false);
    expect(attached.environment).toMatchObject({
      A: "1",
      SSL_CERT_FILE: expect.stringContaining("/etc/"),
    });
    const free = new Attached();
    await start(free, { internet: true });
    expect(free.order).toEqual(["start"]);
    expect(free.started?.enableInternet).toBe(true);
    expect(free.environment).toEqual({ A: "1" });
    const closed = new Attached();
    await start(closed, { internet: false });
    expect(closed.started?.enableInternet).toBe(false);
  });

  it("[NW6] an allowed host is fetched, any other is not, and a denied one never", async () => {
    const fetched: string[] = [];
    vi.stubGlobal("fetch", async (request: Request) => {
      fetched.push(request.url);
      return new Response("outside");
    });
    const allowing = new Attached();
    const lists = { allow: ["*.example.com", "b.example"], deny: ["bad.example.com"] };
    await start(allowing, { internet: true, ...lists });
    for (const egress of [allowing.http, allowing.https]) {
      expect(await statusOf(egress, "https://a.example.com/x")).toBe(200);
      expect(await statusOf(egress, "http://b.example/")).toBe(200);
      expect(await statusOf(egress, "http://bad.example.com/")).toBe(403);
      expect(await statusOf(egress, "http://example.org/")).toBe(403);
      expect(await statusOf(egress, "http://192.0.2.1/")).toBe(403);
    }
    expect(fetched).toHaveLength(4);
    const denying = new Attached();
    await start(denying, { internet: true, deny: ["bad.example"] });
    expect(denying.started?.enableInternet).toBe(false);
    expect(await statusOf(denying.https, "https://bad.example/")).toBe(403);
    expect(await statusOf(denying.https, "https://good.example/")).toBe(200);
  });

  it("[NW7] a restarted object applies the host lists to a running container again before its first call", async () => {
    const attached = new Attached();
    const network = { internet: true, allow: ["a.example"] };
    await start(attached, network);
    attached.order.length = 0;
    const container = open(attached, network);
    await container.agent("", new Request("http://agent/v1/health"));
    await container.agent("", new Request("http://agent/v1/health"));
    expect(attached.order).toEqual(["https *", "http"]);
  });
});
