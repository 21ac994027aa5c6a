/** References to templates: `name` or `name:tag`. */
import { z } from "zod";

const referencePattern = /^[a-z0-9][a-z0-9._-]{0,62}(:[A-Za-z0-9_][A-Za-z0-9._-]{0,62})?$/;

/** `name` or `name:tag`; without a tag it is `latest`. */
export const templateReferenceSchema = z
  .string()
  .regex(
    referencePattern,
    "must be a name in lower case of at most 63 characters, with a tag after a colon if it has one",
  )
  .meta({ example: "web" });

/** The name and tag of a checked reference. */
export function splitReference(reference: string): { name: string; tag: string } {
  const [name = "", tag = "latest"] = reference.split(":");
  return { name, tag };
}
