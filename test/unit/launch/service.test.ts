/** The unit of systemd, as far as it can be checked without systemd, and by systemd's own check where there is one. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "../../../container/launch/paths.js";
import { unknownVariables } from "../../../container/launch/variables.js";

const unit = readFileSync(join(root, "container/service/berth.service"), "utf8");
const settingOf = (name: string) => new RegExp(`^${name}=(.*)$`, "m").exec(unit)?.[1] ?? "";
const canVerify = spawnSync("systemd-analyze", ["--version"]).status === 0;

describe("the service", () => {
  it("[O30] runs a program that exists, with variables that have an effect", () => {
    const [, script = ""] = settingOf("ExecStart").split(" ");
    expect(existsSync(join(root, script))).toBe(true);
    const [name = "", value] = settingOf("Environment").split("=");
    expect(unknownVariables({ [name]: value })).toEqual([]);
    expect(value).toBe(`/var/lib/${settingOf("StateDirectory")}`);
  });

  it.skipIf(!canVerify)("[O30] is valid for systemd", () => {
    const folder = mkdtempSync(join(tmpdir(), "berth-unit-"));
    try {
      const path = join(folder, "berth.service");
      // Its program is where the operator put it.
      writeFileSync(path, unit.replace("/usr/bin/node", process.execPath));
      const checked = spawnSync("systemd-analyze", ["verify", "--man=no", path], {
        encoding: "utf8",
      });
      expect(checked.stderr.split("\n").filter((line) => line.includes("berth.service"))).toEqual(
        [],
      );
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
