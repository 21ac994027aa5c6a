/** Isolation of a sandbox from its machine and its neighbours, as root and as another user. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { identities, type RunningSandbox, run, sharedEngine } from "./test-engine.ts";

describe.each(identities())("a jail of an engine that is %s", (as) => {
  const engine = sharedEngine(as);
  const { data } = engine;
  let sandbox: RunningSandbox;
  let other: RunningSandbox;

  beforeAll(async () => {
    sandbox = await run(engine);
    other = await run(engine);
  });

  it("[R1] the root contains only the allowed folders of the machine", async () => {
    const { stdout } = await sandbox.sh("ls -A /");
    const allowed = ["bin", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "mnt", "opt"];
    allowed.push("proc", "root", "run", "sbin", "srv", "tmp", "usr", "var", "workspace");
    const seen = stdout.trim().split("\n");
    expect(seen).toContain("usr");
    expect(seen.filter((name) => !allowed.includes(name))).toEqual([]);
    const listEmpty = "ls -A /home/berth /mnt /opt /srv /var/run /run | grep -v :; ls /home";
    const empty = await sandbox.sh(listEmpty);
    const names = empty.stdout.split("\n").filter(Boolean);
    expect(names).toEqual(expect.arrayContaining(["berth", "lock"]));
    expect(empty.stdout).not.toMatch(/sock|docker|dbus/);
    expect((await sandbox.sh("ls -A /root")).stdout).toBe("");
  });

  it("[R2] no path leads to Berth's data or to another sandbox's files", async () => {
    await other.sh("echo other-secret > /workspace/mark; echo other-secret > /tmp/mark");
    const onHost = `${data}/trees/${other.id}/workspace/mark`;
    expect(readFileSync(onHost, "utf8")).toBe("other-secret\n");
    expect((await sandbox.sh(`cat ${onHost}; cat /workspace/mark /tmp/mark`)).stdout).toBe("");
    expect((await sandbox.sh(`ls -d ${data}`)).exitCode).not.toBe(0);
    const links = "ls -d /proc/1/root/. /proc/self/root/../../../root/.ssh /proc/1/cwd/.";
    expect((await sandbox.sh(links)).exitCode).not.toBe(0);
  });

  it("[R3] commands run as the user berth, without capabilities, and a password is no way to more", async () => {
    const readStatus = "id -un; id -u; grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status";
    const status = await sandbox.sh(readStatus);
    expect(status.stdout).toMatch(/^berth\n10001\n/);
    for (const set of ["Inh", "Prm", "Eff", "Amb"]) {
      expect(status.stdout).toMatch(new RegExp(`Cap${set}:\\s+0+\n`));
    }
    const { user } = sandbox.started.isolation;
    expect(status.stdout).toMatch(
      new RegExp(`NoNewPrivs:\\s+${user === "ranged" ? 0 : 1}\nSeccomp:\\s+2`),
    );
    const gains = ["unshare --user true", "unshare --mount true", "mount -t tmpfs x /tmp"];
    for (const command of gains) {
      expect((await sandbox.sh(command)).exitCode, command).not.toBe(0);
    }
    // Setuid programs do not give root here.
    expect((await sandbox.sh("find /usr/bin -perm -4000")).stdout).toContain("/usr/bin/");
    expect((await sandbox.sh("echo | su -c id root")).stdout).not.toContain("uid=0");
  });

  it("[R6] no argument, no environment and no log contains a secret", async () => {
    const processes = engine.processes();
    expect(processes.length).toBeGreaterThan(3);
    for (const pid of processes) {
      for (const file of ["cmdline", "environ"]) {
        let text = "";
        try {
          text = readFileSync(`/proc/${pid}/${file}`, "utf8");
        } catch {
          // A file that cannot be read leaks nothing.
        }
        expect(text, `${pid} ${file}`).not.toContain(engine.secret);
        expect(text, `${pid} ${file}`).not.toMatch(/[0-9a-f]{8}-[0-9a-f]{4}-/);
      }
    }
    expect(engine.log()).not.toContain(engine.secret);
  });

  it("[R7] what a sandbox writes to system folders stays private to it", async () => {
    const name = `berth-test-${sandbox.id}`;
    await sandbox.sh(`touch /usr/${name} /etc/${name} /usr/bin/${name}`);
    for (const folder of ["/usr", "/etc", "/usr/bin"]) {
      expect(existsSync(`${folder}/${name}`)).toBe(false);
      expect((await other.sh(`ls ${folder}/${name}`)).stdout).toBe("");
    }
  });

  it("[R8] the folders and devices that programs expect exist", async () => {
    const script = [
      "set -e; cd; pwd; touch a; cd /workspace; touch a; touch /tmp/a /dev/shm/a /var/tmp/a",
      "head -c 3 /dev/zero | wc -c; head -c 1 /dev/urandom | wc -c; echo gone > /dev/null",
      "hostname; getent hosts localhost | wc -l; getent passwd berth; ls /etc/ssl/certs | head -1 | wc -l",
      "ls -d /sys || echo no sys; readlink /dev/fd; ls /dev/ptmx",
    ].join("; ");
    const { stdout, exitCode, stderr } = await sandbox.sh(script);
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
    expect(stdout).toMatch(/^\/home\/berth\n3\n1\nsandbox\n1\nberth:x:10001/);
    expect(stdout).toContain("no sys\n/proc/self/fd\n");
  });

  it("[R9] /etc has its public files and none with passwords or tokens of the machine", async () => {
    const { stdout } = await sandbox.sh("find /etc -type f -o -type l");
    expect(stdout).toContain("/etc/passwd");
    expect(stdout).not.toMatch(
      /shadow|npmrc|pip\.conf|\/ssh|netrc|gitconfig|ssl\/private|machine-id/,
    );
  });

  it("[R10] the data folder can only be read by Berth's own user", () => {
    for (const folder of ["trees", "snapshots", "live"]) {
      expect(statSync(`${data}/${folder}`).mode & 0o077, folder).toBe(0);
    }
    expect(existsSync(`${data}/trees/${sandbox.id}`)).toBe(true);
  });
});
