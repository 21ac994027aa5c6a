/** Inbound and outbound connections of a real container: ports and lists of hosts. */
import { createServer, type Server as HttpServer } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Server } from "../system/server.ts";
import {
  type BerthHome,
  callsOf,
  endBerth,
  facts,
  kill,
  newHome,
  removeContainers,
  startBerth,
} from "./berth.ts";

const serving = 8123;
/** Every base image has perl, but not every one has an HTTP server. */
const serve = [
  `$s = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => ${serving}, Listen => 5) or die;`,
  "while ($c = $s->accept) { $first = <$c>; while (<$c>) { last if /^\\r?\\n$/ }",
  '$t = "asked $first"; $n = length $t;',
  'print $c "HTTP/1.1 200 OK\\r\\ncontent-length: $n\\r\\nconnection: close\\r\\n\\r\\n$t"; close $c }',
].join(" ");
/** Fetches the first response line of a host with the shell alone. */
const get = (host: string) =>
  `bash -c 'exec 3<>/dev/tcp/${host}/80 && printf "GET /x HTTP/1.1\\r\\nhost: ${host}\\r\\nconnection: close\\r\\n\\r\\n" >&3 && timeout 20 head -1 <&3'`;
const curl = (url: string) =>
  `curl --silent --show-error --max-time 20 --output /dev/null --write-out '%{http_code}' ${url}`;

let home: BerthHome;
let server: Server;
let origin: HttpServer | undefined;
const requests: string[] = [];
const { call, checkpoint, outputOf, viewOf } = callsOf(() => server);

beforeAll(async () => {
  home = newHome();
  server = await startBerth(home);
  if (!facts.isOwn) return;
  // In the network of these tests good.test is this machine, which represents the internet.
  const outside = createServer((request, response) => {
    requests.push(`${request.headers.host}${request.url}`);
    response.end("outside");
  });
  await new Promise<void>((resolve) => outside.listen(80, "127.0.0.1", resolve));
  origin = outside;
});
afterAll(async () => {
  origin?.close();
  await endBerth(home, server);
});

describe("the network of a real container", () => {
  it("[DK8] a server in a sandbox can be reached at its port address without any credentials", async () => {
    const id = await server.create();
    const argv = ["perl", "-MIO::Socket::INET", "-e", serve];
    const process = await call("POST", id, "/processes", { argv });
    const wait = `/processes/${process.body.id}/wait?for=port:${serving}&timeoutMs=20000`;
    expect((await call("GET", id, wait)).status).toBe(200);
    const opened = await call("POST", id, "/ports", { port: serving });
    expect(opened.status).toBe(201);
    const response = await fetch(`${opened.body.pathUrl}a/b?c=d`);
    expect(await response.text()).toBe("asked GET /a/b?c=d HTTP/1.1\r\n");
    const headers = { authorization: `Bearer ${server.key}` };
    const port = `${server.url}/v1/sandboxes/${id}/ports/${serving}`;
    expect((await fetch(port, { method: "DELETE", headers })).status).toBe(204);
    expect((await fetch(String(opened.body.pathUrl))).status).toBe(404);
  });

  it("[DK9] a list of hosts is enforced, also after Berth was killed: allowed hosts are fetched, all others are refused", async () => {
    const network = { internet: true, allow: ["*.test", "192.0.2.9"], deny: ["bad.test"] };
    const id = await server.create({ network });
    const expectEnforced = async () => {
      // Hosts that are not allowed have no address, or one that refuses.
      const refused = await Promise.all(
        ["bad.test", "evil.example"].map(async (host) => (await server.exec(id, get(host))).body),
      );
      for (const { stdout } of refused) expect(stdout).toMatch(/^(HTTP\/1.1 403 .*\r\n)?$/);
      expect(refused.some(({ stdout }) => String(stdout).includes("403"))).toBe(true);
      if (!facts.isOwn) return;
      requests.length = 0;
      expect(await outputOf(id, get("good.test"))).toBe("HTTP/1.1 200 OK\r\n");
      expect(requests).toEqual(["good.test/x"]);
      expect(await outputOf(id, curl("https://bad.test/"))).toBe("403");
      expect(await outputOf(id, curl("https://evil.example/"))).toBe("403");
      // No server listens here; an allowed host differs only in not being refused.
      const { body } = await server.exec(id, curl("https://good.test/"));
      expect(body.stdout).not.toBe("403");
      expect(requests).toEqual(["good.test/x"]);
    };
    await expectEnforced();
    const before = await outputOf(id, "echo stays > /tmp/stays; cat /proc/uptime");
    expect(before).not.toBe("");
    await kill(server);
    server = await startBerth(home);
    expect(await outputOf(id, "cat /tmp/stays")).toBe("stays\n");
    await expectEnforced();
  });

  it("[DK10] a sandbox whose container was removed while Berth was down continues from the latest saved tree", async () => {
    const id = await server.create();
    await outputOf(id, "echo 1 > first");
    await checkpoint(id, "first");
    await outputOf(id, "echo 2 > second");
    await server.stop();
    removeContainers(home);
    server = await startBerth(home);
    expect(await outputOf(id, "ls")).toBe("first\n");
    expect(await viewOf(id)).toMatchObject({ state: "running", files: "snapshot" });
  });
});
