/** References to images in a registry: `host/path:tag`, `host/path@sha256:…`, or the name of an imported image. */
import { z } from "zod";
import { limits } from "../limits.ts";

export type ImageReference = {
  /** Host, and port if given. */
  host: string;
  repository: string;
  tag?: string;
  digest?: string;
};

const hostPattern = /^(localhost|[a-z0-9-]+(\.[a-z0-9-]+)+|[a-z0-9-]+(?=:))(:\d{1,5})?$/;
const repositoryPattern =
  /^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(\/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$/;
const tagPattern = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/;
const namePattern = /^[a-z0-9][a-z0-9._-]{0,63}(:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?$/;

export const digestPattern = /^sha256:[0-9a-f]{64}$/;

/** Undefined: the text is not a reference to a registry. */
export function parseReference(text: string): ImageReference | undefined {
  const [named = "", digest, ...more] = text.split("@");
  if (more.length > 0 || (digest !== undefined && !digestPattern.test(digest))) return undefined;
  const slash = named.indexOf("/");
  if (slash < 0) return undefined;
  const host = named.slice(0, slash);
  const [repository = "", tag, ...rest] = named.slice(slash + 1).split(":");
  const isValid = hostPattern.test(host) && repositoryPattern.test(repository) && rest.length === 0;
  if (!isValid || (tag !== undefined && !tagPattern.test(tag))) return undefined;
  if (digest !== undefined) return { host, repository, digest };
  return { host, repository, tag: tag ?? "latest" };
}

const form = "must be host/path:tag, host/path@sha256:… or the name of an image";

/** What `create` takes: a configured or imported name, or a reference that was pulled. */
export const imageNameSchema = z
  .string()
  .max(limits.imageReferenceCharsMax)
  .refine((text) => namePattern.test(text) || parseReference(text) !== undefined, form);

export const importNameSchema = z
  .string()
  .regex(namePattern, "must be a name in lower case, with a tag after a colon if it has one");

export const pullReferenceSchema = z
  .string()
  .max(limits.imageReferenceCharsMax)
  .refine(
    (text) => parseReference(text) !== undefined,
    "must be host/path:tag or host/path@sha256:…",
  )
  .meta({ example: "registry.example.com/team/app:1.2" });
