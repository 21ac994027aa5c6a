import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formBoundary, readForm } from "../../../src/wires/e2b/multipart.ts";

const boundary = "----boundary7";

async function* inPieces(bytes: Buffer, size: number): AsyncGenerator<Uint8Array, void> {
  for (let start = 0; start < bytes.length; start += size)
    yield bytes.subarray(start, start + size);
}

async function partsOf(bytes: Buffer, size: number) {
  const parts: { name: string | undefined; filename: string | undefined; content: string }[] = [];
  for await (const { name, filename, chunks } of readForm(inPieces(bytes, size), boundary)) {
    const pieces: Uint8Array[] = [];
    for await (const chunk of chunks) pieces.push(Buffer.from(chunk));
    parts.push({ name, filename, content: Buffer.concat(pieces).toString("hex") });
  }
  return parts;
}

function formOf(files: { filename: string; content: Uint8Array }[]): Buffer {
  const parts = files.map(({ filename, content }) => {
    const head = `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${filename}"\r\nContent-Type: application/octet-stream\r\n\r\n`;
    return Buffer.concat([Buffer.from(head), content, Buffer.from("\r\n")]);
  });
  return Buffer.concat([...parts, Buffer.from(`--${boundary}--\r\n`)]);
}

describe("a form", () => {
  it("[WE2] is read the same in pieces of any size, whatever its files contain", async () => {
    const content = fc.oneof(
      fc.uint8Array({ maxLength: 60 }),
      // Almost the boundary.
      fc.constantFrom("\r\n--", "\r\n------bound", "\r\n\r\n", "--", "\r").map(Buffer.from),
    );
    const file = fc.record({ filename: fc.stringMatching(/^[\w/. ü-]{1,20}$/), content });
    const files = fc.array(file, { maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(files, fc.integer({ min: 1, max: 80 }), async (given, size) => {
        expect(await partsOf(formOf(given), size)).toEqual(
          given.map(({ filename, content: bytes }) => ({
            name: "file",
            filename,
            content: Buffer.from(bytes).toString("hex"),
          })),
        );
      }),
    );
  });

  it("[WE2] that is cut anywhere is refused", async () => {
    const form = formOf([{ filename: "a/b.txt", content: Buffer.from("content") }]);
    for (let length = 0; length < form.length - 4; length += 1) {
      await expect(partsOf(form.subarray(0, length), 7)).rejects.toThrow("ended early");
    }
  });

  it("[WE2] names its boundary in the content type", () => {
    expect(formBoundary("multipart/form-data; boundary=abc")).toBe("abc");
    expect(formBoundary('multipart/form-data; boundary="a c"')).toBe("a c");
    expect(formBoundary("application/octet-stream")).toBeUndefined();
    expect(() => formBoundary("multipart/form-data")).toThrow("no boundary");
  });
});
