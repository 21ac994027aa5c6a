import { describe, expect, it } from "vitest";
import { parseKeysFile } from "../../../container/launch/keys-file.js";

const sha256 = "0123456789abcdef".repeat(4);

describe("the keys file", () => {
  it("[KY6] has one key in a line, with comments and empty lines between", () => {
    const text = `# team\n\nacme/alice ${sha256}\n\tacme/bob.b ${sha256} rights=read,exec expires=2027-01-31 # leaves\n`;
    expect(parseKeysFile(text)).toEqual([
      { tenant: "acme", name: "alice", sha256 },
      {
        ...{ tenant: "acme", name: "bob.b", sha256, rights: ["read", "exec"] },
        expiresAt: "2027-01-31T00:00:00.000Z",
      },
    ]);
    expect(parseKeysFile("")).toEqual([]);
  });

  it.each([
    [`alice ${sha256}`, /line 1: must begin with <tenant>\/<name>/],
    [`\nacme/alice secret`, /line 2: the SHA-256/],
    [`acme/alice ${sha256} right=read`, /line 1: right=read must be/],
    [`acme/alice ${sha256} expires=soon`, /line 1: expires=soon must be/],
  ])("[KY6] %j is refused by its line, without the key", (text, words) => {
    expect(() => parseKeysFile(text)).toThrow(words);
  });
});
