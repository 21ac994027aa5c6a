/** Keys that are created and removed while the server runs. */
import type { Key, KeyCall, MadeKey } from "../protocol/key.ts";
import { type CallOptions, type HttpClient, pathSegment } from "./http/request.ts";

/** What a new key is called, whose it is, and what it may do. */
export type KeyInput = Pick<KeyCall, "name" | "tenant"> & Partial<KeyCall>;

const all = "/v1/keys";

/** The keys of all tenants. Its calls need an administrator's key. */
export class Keys {
  readonly #client: HttpClient;

  /** @internal */
  constructor(client: HttpClient) {
    this.#client = client;
  }

  /** All keys, without the keys themselves. Those of the server's variables are not listed. */
  async list(options: CallOptions = {}): Promise<Key[]> {
    const client = this.#client.with(options);
    return (await client.request<{ keys: Key[] }>({ method: "GET", path: all })).keys;
  }

  /** Creates a key, which is shown only in this answer. It works at once. */
  create(input: KeyInput, options: CallOptions = {}): Promise<MadeKey> {
    return this.#client.with(options).request({ method: "POST", path: all, body: input });
  }

  /** Removes a key and ends what it has open. */
  async delete(id: string, options: CallOptions = {}): Promise<void> {
    const path = `${all}/${pathSegment(id)}`;
    await this.#client.with(options).request({ method: "DELETE", path, isRepeatable: true });
  }
}
