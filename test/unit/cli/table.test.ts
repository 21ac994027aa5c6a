import { describe, expect, it } from "vitest";
import { type Column, formatTable } from "../../../src/cli/output/table.ts";

type Row = { id: string; branch: string; config: string; age: string };

const columns: Column<Row>[] = [
  { name: "ID", cell: ({ id }) => id },
  { name: "BRANCH", cell: ({ branch }) => branch, shrinks: true },
  { name: "CONFIG", cell: ({ config }) => config, shrinks: true },
  { name: "AGE", cell: ({ age }) => age },
];
const id = "k3v9q2m7x1c5b8n4tq0w8e2r";
const long = { id, branch: "feature/日本語-".repeat(5), config: "ci/sandbox.json", age: "3d" };
const short = { id, branch: "main", config: "-", age: "36m" };

describe("a table of long names", () => {
  it("[CL13] keeps every column visible: those that may shrink do, the widest first", () => {
    expect(formatTable(columns, [long, short], 80)).toEqual([
      "ID                        BRANCH                            CONFIG           AGE",
      `${id}  feature/日本語-feature/日本語-f…  ci/sandbox.json  3d`,
      `${id}  main                              -                36m`,
    ]);
    for (const width of [60, 70]) {
      const lines = formatTable(columns, [long, short], width);
      expect(lines.map((line) => line.slice(-3).trim())).toEqual(["AGE", "3d", "36m"]);
      for (const line of lines) expect(line).not.toContain(`${id}…`);
    }
  });

  it("[CL13] is cut off at the edge of a terminal that is too narrow, and complete in a pipe", () => {
    for (const line of formatTable(columns, [long, short], 30)) expect(line).toMatch(/^.{26,29}…$/);
    const complete = `${id}  ${long.branch}  ci/sandbox.json  3d`;
    // 0 is the width of a terminal without a known size.
    for (const width of [undefined, 0])
      expect(formatTable(columns, [long], width)[1]).toBe(complete);
  });
});
