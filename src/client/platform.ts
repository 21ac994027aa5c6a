/**
 * Types of the platform that the SDK's own types name. Where the project has them, from the DOM, from Node or from
 * Workers, they are those; elsewhere they are what the SDK needs of them, so that its types need no library.
 */

type Global<Name extends string, Otherwise> = typeof globalThis extends {
  [Key in Name]: { prototype: infer Known };
}
  ? Known
  : Otherwise;

/** Says when to give up. */
export type AbortSignal = Global<
  "AbortSignal",
  {
    readonly aborted: boolean;
    readonly reason: unknown;
    addEventListener(type: "abort", listener: () => void): void;
    removeEventListener(type: "abort", listener: () => void): void;
  }
>;

/** Bytes that the platform may keep on disk. */
export type Blob = Global<"Blob", { readonly size: number; arrayBuffer(): Promise<ArrayBuffer> }>;

/** What `fetch` returns. */
export type Response = Global<"Response", { readonly status: number; text(): Promise<string> }>;

/** What `fetch` takes as its second argument. */
export type RequestInit = typeof globalThis extends {
  fetch(url: string, init?: infer Init): unknown;
}
  ? NonNullable<Init>
  : { method?: string; headers?: unknown; body?: unknown; signal?: unknown };

/** The body of a request. */
export type BodyInit = string | Uint8Array | Blob;

/** What `await using` ends. */
export interface AsyncDisposable {
  [Symbol.asyncDispose](): PromiseLike<void>;
}
