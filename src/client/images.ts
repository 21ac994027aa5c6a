/** Images: the root file systems that sandboxes of one machine start with. */
import type { Image } from "../protocol/image.ts";
import type { BerthCalls } from "./calls.ts";
import type { CallOptions } from "./http/request.ts";
import type { TellProgress, UploadContent } from "./http/upload.ts";

/** Options of `images.import`. */
export type ImportOptions = CallOptions & { progress?: TellProgress };

/** The images of the machine, which all its tenants share. */
export class Images {
  readonly #calls: BerthCalls;

  /** @internal */
  constructor(calls: BerthCalls) {
    this.#calls = calls;
  }

  /** All images, and the pulls. */
  async list(options: CallOptions = {}): Promise<Image[]> {
    return (await this.#calls.images(options)).images;
  }

  /** One image, or the progress of its pull. */
  get(reference: string, options: CallOptions = {}): Promise<Image> {
    return this.#calls.image(reference, options);
  }

  /** With an administrator's key: pulls an image; returns when it is ready, or after `waitMs` (0 by default). Call it again to wait on. */
  pull(reference: string, options: CallOptions & { waitMs?: number } = {}): Promise<Image> {
    return this.#calls.pullImage({ reference, ...options });
  }

  /** With an administrator's key: imports a tar archive: an OCI layout, what `docker save` writes, or a root file system. */
  import(name: string, content: UploadContent, options: ImportOptions = {}): Promise<Image> {
    return this.#calls.importImage(name, content, options);
  }

  /** With an administrator's key: removes the name of an image. */
  remove(reference: string, options: CallOptions = {}): Promise<Image> {
    return this.#calls.removeImage(reference, options);
  }
}
