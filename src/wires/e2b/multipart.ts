/** Reads forms (multipart/form-data) as they come: no part is held in memory. */
import { WireError } from "./errors.ts";

export type Part = {
  name: string | undefined;
  filename: string | undefined;
  /** To be read before the next part; what is left unread is skipped. */
  chunks: AsyncGenerator<Uint8Array, void>;
};

const headBytesMax = 16 * 1024;
const latin1 = new TextDecoder("latin1");
const utf8 = new TextDecoder();

/** Undefined: the body is no form. */
export function formBoundary(contentType: string | null): string | undefined {
  if (!/^multipart\/form-data\b/i.test(contentType ?? "")) return undefined;
  const match = /;\s*boundary=(?:"([^"]{1,200})"|([^\s;]{1,200}))/i.exec(contentType ?? "");
  const boundary = match?.[1] ?? match?.[2];
  if (boundary === undefined) throw new WireError(400, "the form has no boundary");
  return boundary;
}

export async function* readForm(
  source: AsyncIterator<Uint8Array>,
  boundary: string,
): AsyncGenerator<Part, void> {
  const input = new Input(source);
  // The first boundary has no line break before it.
  input.prepend(Buffer.from("\r\n"));
  const delimiter = Buffer.from(`\r\n--${boundary}`);
  for await (const _preamble of input.until(delimiter));
  while (!(await input.isLastDelimiter())) {
    const head = await input.head();
    const chunks = input.until(delimiter);
    yield { ...dispositionOf(head), chunks };
    for await (const _unread of chunks);
    if (!input.isAtDelimiter) for await (const _rest of input.until(delimiter));
  }
}

class Input {
  readonly #source: AsyncIterator<Uint8Array>;
  #bytes: Buffer = Buffer.alloc(0);
  /** The delimiter was read last. */
  isAtDelimiter = false;

  constructor(source: AsyncIterator<Uint8Array>) {
    this.#source = source;
  }

  prepend(bytes: Buffer): void {
    this.#bytes = Buffer.concat([bytes, this.#bytes]);
  }

  /** The bytes before the delimiter, which is taken too. */
  async *until(delimiter: Buffer): AsyncGenerator<Uint8Array, void> {
    this.isAtDelimiter = false;
    for (;;) {
      const index = this.#bytes.indexOf(delimiter);
      // A part of the delimiter may be at the end of what has come.
      const certain = index >= 0 ? index : this.#bytes.length - delimiter.length + 1;
      if (certain > 0) {
        const piece = this.#bytes.subarray(0, certain);
        this.#bytes = this.#bytes.subarray(certain);
        yield piece;
      }
      if (index >= 0) {
        this.#bytes = this.#bytes.subarray(delimiter.length);
        this.isAtDelimiter = true;
        return;
      }
      await this.#more();
    }
  }

  /** After a delimiter: two dashes end the form, a line break begins the next part. */
  async isLastDelimiter(): Promise<boolean> {
    while (this.#bytes.length < 2) await this.#more();
    const mark = latin1.decode(this.#bytes.subarray(0, 2));
    if (mark === "--") return true;
    if (mark !== "\r\n") throw new WireError(400, "the form has a broken boundary");
    return false;
  }

  async head(): Promise<string> {
    for (;;) {
      const end = this.#bytes.indexOf("\r\n\r\n");
      if (end >= 0) {
        const head = utf8.decode(this.#bytes.subarray(0, end));
        // The line break before an empty part belongs to its delimiter.
        this.#bytes = this.#bytes.subarray(end + 4);
        return head;
      }
      if (this.#bytes.length > headBytesMax) throw new WireError(400, "a part has a long head");
      await this.#more();
    }
  }

  async #more(): Promise<void> {
    const { done, value } = await this.#source.next();
    if (done) throw new WireError(400, "the form ended early");
    this.#bytes =
      this.#bytes.length === 0 ? Buffer.from(value) : Buffer.concat([this.#bytes, value]);
  }
}

/** The filename is a whole path here. */
function dispositionOf(head: string): Pick<Part, "name" | "filename"> {
  const line = /^content-disposition:(.*)$/im.exec(head)?.[1] ?? "";
  const field = (name: string) => {
    const text = new RegExp(`;\\s*${name}="((?:[^"\\\\]|\\\\.)*)"`, "i").exec(line)?.[1];
    return text === undefined ? undefined : readEscapes(text);
  };
  const extended = /;\s*filename\*=UTF-8''([^;\s]+)/i.exec(line)?.[1];
  return {
    name: field("name"),
    filename: extended === undefined ? field("filename") : decodeURIComponent(extended),
  };
}

/** Browsers and Node write `"` and line breaks as percent-encoded, others with a backslash. */
function readEscapes(text: string): string {
  return text
    .replaceAll(/%(22|0[aAdD])/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replaceAll(/\\(["\\])/g, "$1");
}
