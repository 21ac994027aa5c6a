/**
 * The schema of a boolean in a query.
 */
import { z } from "zod";

export const flagSchema = z
  .enum(["0", "1", "true", "false"], "must be true or false")
  .transform((text) => text === "1" || text === "true");
