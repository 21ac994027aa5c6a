/**
 * Makes archives by hand, as no honest program would make them. Names are raw: one character is one byte.
 */
import { gzipSync } from "node:zlib";

export type Made = {
  name?: string;
  type?: string;
  says?: string;
  body?: string | Buffer;
  mode?: number;
  /** Instead of the real size of the body. */
  size?: number | string;
  /** Records of a pax header before the member. */
  pax?: Record<string, string>;
  checksum?: number;
  magic?: string;
};

export function member({ pax, ...own }: Made): Buffer {
  if (pax === undefined) return block(own);
  const records = Object.entries(pax).map(([key, value]) => record(key, value));
  return Buffer.concat([
    block({ name: "pax", type: "x", body: Buffer.concat(records) }),
    block(own),
  ]);
}

export const end = Buffer.alloc(1024);

export function archive(...members: Made[]): Buffer<ArrayBuffer> {
  return Buffer.from(Buffer.concat([...members.map(member), end]));
}

export function zipped(...members: Made[]): Buffer<ArrayBuffer> {
  return Buffer.from(gzipSync(archive(...members)));
}

export function record(key: string, value: string): Buffer {
  const rest = ` ${key}=${value}\n`;
  const digits = String(rest.length + 2).length;
  return Buffer.from(`${rest.length + digits}${rest}`, "latin1");
}

function block(made: Made): Buffer {
  const { name = "", type = "0", says = "", mode = 0o644, magic = "ustar\x0000" } = made;
  const body = Buffer.from((made.body ?? "") as string, "latin1");
  const header = Buffer.alloc(512);
  header.write(name, 0, 100, "latin1");
  header.write(octal(mode, 7), 100);
  header.write(octal(0, 7), 108);
  header.write(octal(0, 7), 116);
  const size = made.size ?? body.length;
  header.write(typeof size === "string" ? size : octal(size, 11), 124, 12, "latin1");
  header.write(octal(1_000_000_000, 11), 136);
  header.write(" ".repeat(8), 148);
  header.write(type, 156, 1, "latin1");
  header.write(says, 157, 100, "latin1");
  header.write(magic, 257, "latin1");
  const sum = made.checksum ?? header.reduce((all, byte) => all + byte, 0);
  header.write(`${octal(sum, 6)}\0 `, 148);
  return Buffer.concat([header, body, Buffer.alloc((512 - (body.length % 512)) % 512)]);
}

function octal(value: number, digits: number): string {
  return value.toString(8).padStart(digits, "0");
}
