/** Root inside a sandbox: what it may do, what it cannot reach, and whose files its files are. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { fileRefusals, refusals, rootMay, tryRights } from "../security/rights.ts";
import { until } from "../until.ts";
import { claimedIdRanges } from "./id-ranges.ts";
import {
  agentsOf,
  firstOf,
  identities,
  newId,
  type RunningSandbox,
  run,
  sharedEngine,
} from "./test-engine.ts";

describe.runIf(identities().includes("root"))("root inside a sandbox", () => {
  const engine = sharedEngine("root");
  let sandbox: RunningSandbox;
  let other: RunningSandbox;

  beforeAll(async () => {
    sandbox = await run(engine);
    other = await run(engine);
  });

  const asRoot = async (command: string, of = sandbox) => {
    const result = await of.sh(command, 60_000, "root");
    return `${result.stdout}${result.stderr}`;
  };

  it("[R60] has ids that no other sandbox has, and is nobody outside", async () => {
    const maps = await Promise.all([
      asRoot("cat /proc/self/uid_map"),
      asRoot("cat /proc/self/uid_map", other),
    ]);
    const firsts = maps.map((map) => Number(/^\s*0\s+(\d+)\s+65535\n$/.exec(map)?.[1]));
    expect(Math.abs((firsts[0] ?? 0) - (firsts[1] ?? 0))).toBeGreaterThanOrEqual(65_536);
    expect(claimedIdRanges()).toEqual(expect.arrayContaining(firsts));
    const waiting = sandbox.sh("until [ -e /tmp/seen ]; do sleep 0.1; done", 120_000, "root");
    const agents = agentsOf(engine);
    const users = () =>
      agents.flatMap((agent) =>
        readFileSync(`/proc/${agent}/task/${agent}/children`, "utf8")
          .split(" ")
          .filter(Boolean)
          .map((pid) => statSync(`/proc/${pid}`).uid),
      );
    await expect.poll(users, { timeout: 60_000 }).toContain(firsts[0]);
    await sandbox.sh("mkdir /tmp/seen");
    await waiting;
  });

  it("[R61] is there by `sudo` without a password, and as `user`; other users and their groups are found by name", async () => {
    const made = await sandbox.sh(
      "sudo useradd --create-home joe && sudo groupadd makers && sudo usermod -aG makers joe && sudo -u joe id -un && sudo -n id -u",
    );
    expect(made).toMatchObject({ stdout: "joe\n0\n", exitCode: 0 });
    const script = "id -un; id -Gn; echo $HOME $USER; touch /tmp/of-joe";
    expect((await sandbox.sh(script, 20_000, "joe")).stdout).toBe(
      "joe\njoe makers\n/home/joe joe\n",
    );
    expect((await sandbox.sh("id -u; id -g", 20_000, "1234:77")).stdout).toBe("1234\n77\n");
    await expect(sandbox.sh("id", 20_000, "nobody-here")).rejects.toThrow(/400.*user nobody-here/);
    await expect(sandbox.sh("id", 20_000, "65535")).rejects.toThrow(/400.*65534/);
  });

  it("[R62] changes /usr, /etc and /var, mounts tmpfs and overlays, gives files away, and makes programs of root", async () => {
    const script = `set -e
touch /usr/by-root /etc/by-root /var/by-root
mount -t tmpfs none /mnt && touch /mnt/a
mkdir -p /workspace/l /workspace/u /workspace/w /workspace/m
mount -t overlay none -o lowerdir=/workspace/l,upperdir=/workspace/u,workdir=/workspace/w /workspace/m && touch /workspace/m/a
chown 4242:4243 /var/by-root && stat -c %u:%g /var/by-root
cp /usr/bin/id /usr/bin/id-of-root && chmod 4755 /usr/bin/id-of-root`;
    expect(await asRoot(script)).toBe("4242:4243\n");
    expect((await sandbox.sh("id-of-root -u; ls /workspace/m /mnt")).stdout).toBe(
      "0\n/mnt:\na\n\n/workspace/m:\na\n",
    );
  });

  it("[R63] its files keep their owners over a restart, in a snapshot and in a fork, whichever ids these get", async () => {
    const id = newId();
    const first = await run(engine, { id });
    const setup =
      "chown 4242:4243 /workspace && touch /usr/mine && chown 33:44 /usr/mine && setcap cap_chown+ep /usr/mine; cp /usr/bin/id /etc/id && chmod 4755 /etc/id";
    await asRoot(setup, first);
    const listing = "stat -c %u:%g:%a /workspace /usr/mine /etc/id /home/berth; id -u; /etc/id -u";
    const seen = (await first.sh(listing)).stdout;
    expect(seen).toBe("4242:4243:755\n33:44:644\n0:0:4755\n10001:10001:755\n10001\n0\n");
    const stored = statSync(`${engine.data}/trees/${id}/usr/mine`);
    expect([stored.uid, stored.gid]).toEqual([33, 44]);
    const { handle } = await first.container.snapshot(newId());
    const restarted = await run(engine, { id });
    expect((await restarted.sh(listing)).stdout).toBe(seen);
    const fork = await run(engine, { snapshot: handle });
    expect((await fork.sh(listing)).stdout).toBe(seen);
  });

  it.runIf(existsSync("/var/lib/dpkg/status"))(
    "[R65] installs and removes a package, which a restart keeps and no other sandbox sees",
    async () => {
      const id = newId();
      const first = await run(engine, { id });
      const script = `set -e
mkdir -p /tmp/made/DEBIAN /tmp/made/usr/bin && cd /tmp
printf 'Package: made-here\\nVersion: 1\\nArchitecture: all\\nMaintainer: a <a@b.c>\\nDescription: made here\\n' > made/DEBIAN/control
printf '#!/bin/sh\\necho made\\n' > made/usr/bin/made-here && chmod 755 made/usr/bin/made-here
dpkg-deb --build --root-owner-group made >/dev/null && sudo dpkg -i made.deb >/dev/null && made-here`;
      expect((await first.sh(script, 60_000)).stdout).toBe("made\n");
      const status = "dpkg-query -s made-here | grep Status; made-here";
      const restarted = await run(engine, { id });
      expect((await restarted.sh(status)).stdout).toBe("Status: install ok installed\nmade\n");
      expect((await other.sh(status)).exitCode).toBe(127);
      expect(existsSync("/var/lib/dpkg/info/made-here.list")).toBe(false);
      expect((await restarted.sh("sudo dpkg -r made-here; made-here")).exitCode).toBe(127);
    },
  );

  it("[R66] is not there without `sudo`, but for who names it", async () => {
    const without = await run(engine, { sudo: false });
    const result = await without.sh(
      "sudo -n id -u; su -c 'id -u' root </dev/null; cp /usr/bin/id . ; id -u",
    );
    expect(result.stdout).toBe("10001\n");
    expect(
      (await without.sh("cp /usr/bin/id /etc/id && chmod 4755 /etc/id; id -u", 20_000, "root"))
        .stdout,
    ).toBe("0\n");
    expect((await without.sh("/etc/id -u; grep NoNew /proc/self/status")).stdout).toBe(
      "10001\nNoNewPrivs:\t1\n",
    );
  });

  it("[SC30] finds no way out: system calls, devices, settings of the kernel", async () => {
    const script = tryRights({ settings: true });
    const text = await asRoot(`cat > /tmp/try.py <<'END'\n${script}\nEND\npython3 /tmp/try.py`);
    const results = Object.entries(JSON.parse(text) as Record<string, string>);
    expect(results.length).toBeGreaterThan(process.arch === "x64" ? 35 : 18);
    // Its arguments are refused, not its caller.
    const isRefused = ([what, error]: [string, string]) =>
      [...rootMay, "pivot_root"].includes(what) ||
      (what.startsWith("/") ? fileRefusals : refusals).includes(error);
    expect(results.filter((result) => !isRefused(result))).toEqual([]);
    for (const what of rootMay.filter((name) => name !== "chroot"))
      expect([what, Object.fromEntries(results)[what]]).toEqual([what, "could"]);
  });

  it("[SC31] cannot read, trace, limit, stop or end its agent, nor put anything in its way", async () => {
    const agent = firstOf(agentsOf(engine));
    const start = () => readFileSync(`/proc/${agent}/stat`, "utf8").split(" ")[21];
    const before = start();
    const tries = [
      ...["environ", "mem", "maps", "auxv", "stack", "io"].map(
        (name) => `head -c 1 /proc/1/${name}`,
      ),
      ...["ls /proc/1/fd", "ls /proc/1/cwd/", "ls /proc/1/root/", "readlink /proc/1/exe"],
      ...["kill -9 1", "kill -STOP 1", "kill -TERM 1", "prlimit --pid 1 --as=1", "renice -n 19 1"],
      ...[
        "echo 1000 > /proc/1/oom_score_adj",
        "taskset -p 1 1",
        "umount /run/berth",
        "umount /proc",
      ],
      ...["rm -rf /run/berth", "mv /run/berth /run/b", "touch /run/berth/a", "umount -l /usr"],
      ...[
        "mount -o remount,rw /proc/sys",
        "chown 0 /dev/null",
        "chmod 600 /dev/null",
        "rm /dev/null",
      ],
      ...["nsenter -t 1 -m true", "unshare -U true", "ip link add a type dummy", "hostname a"],
      // Fresh namespaces are its own to make, and hold no more.
      ...["unshare -C sh -c 'mount -t cgroup2 c /mnt && echo 1 > /mnt/pids.max'"],
      ...["unshare -C sh -c 'mount -t cgroup2 c /mnt && echo 1 > /mnt/cgroup.procs'"],
      ...[
        "unshare -n ip link add a type dummy",
        "unshare -pf --mount-proc sh -c 'echo 1 > /proc/sys/kernel/panic'",
      ],
      ...["unshare -n sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'", "mount -t sysfs s /mnt"],
      "mount -t proc p /mnt",
    ];
    const lines = tries.map((line, index) => `(${line}) >/dev/null 2>&1 && echo could ${index}`);
    const could = [...(await asRoot(`${lines.join("\n")}\ntrue`)).matchAll(/could (\d+)/g)];
    expect(could.map(([, index]) => tries[Number(index)])).toEqual([]);
    expect((await sandbox.sh("echo here")).stdout).toBe("here\n");
    expect(start()).toBe(before);
    expect(statSync("/dev/null").mode & 0o777).toBe(0o666);
  });

  it("[SC32] reaches its network only by what every user may: no raw socket, no neighbour's table, low ports and pings", async () => {
    const script = `
import errno, socket
for family, kind, protocol in ((17, 3, 0x300), (2, 3, 1), (2, 3, 255), (10, 3, 58), (16, 3, 12), (16, 3, 6)):
    try: socket.socket(family, kind, protocol); print("could", family, kind, protocol)
    except OSError as e: pass
socket.socket().bind(("127.0.0.1", 80))
socket.socket(2, 2, 1).close()
print("low port and ping")
`;
    const text = await asRoot(
      `cat > /tmp/net.py <<'END'\n${script}\nEND\npython3 /tmp/net.py; ip neigh add 10.0.0.9 lladdr 02:00:00:00:00:01 dev lo 2>/dev/null && echo could; ip -6 neigh add fe80::9 lladdr 02:00:00:00:00:01 dev lo 2>/dev/null && echo could; true`,
    );
    expect(text).toBe("low port and ping\n");
  });

  it("[R64] takes from the kernel what is counted for its own ids: neighbours have theirs", async () => {
    const script = `
import ctypes, os, socket, time
libc = ctypes.CDLL(None, use_errno=True)
watches = 0
while libc.inotify_init() >= 0: watches += 1
a, b = socket.socketpair()
held = 0
try:
    while True:
        b.setblocking(False); a.setblocking(False)
        socket.send_fds(a, [b"x"], [0] * 200); held += 200
except OSError: pass
print(watches, held, flush=True)
os.mkdir("/tmp/taken")
while not os.path.exists("/tmp/used"): time.sleep(0.1)
`;
    const path = "/tmp/take.py";
    await sandbox.sh(`cat > ${path} <<'END'\n${script}\nEND`);
    const taking = sandbox.sh(`ulimit -n 1000000 2>/dev/null; exec python3 ${path}`, 120_000);
    const using = "python3 -c 'import ctypes; print(ctypes.CDLL(None).inotify_init() >= 0)'";
    const isTaken = async () => (await sandbox.sh("test -e /tmp/taken")).exitCode === 0;
    await until("everything is taken", isTaken);
    expect((await other.sh(using)).stdout).toBe("True\n");
    await sandbox.sh("mkdir /tmp/used");
    const [watches = 0] = (await taking).stdout.split(" ").map(Number);
    expect(watches).toBeGreaterThanOrEqual(100);
  });
});
