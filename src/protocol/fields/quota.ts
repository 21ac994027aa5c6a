/** What a tenant may have at once, as the operator configures it. */
import { z } from "zod";
import { parseEntries } from "./entries.ts";

const boundSchema = z
  .string()
  .regex(/^\d{1,9}$/, "must be a whole number")
  .transform(Number)
  .optional();

const quotaSchema = z.strictObject({
  sandboxes: boundSchema,
  createsPerMinute: boundSchema,
  callsAtOnce: boundSchema,
});

const quotaNames = Object.keys(quotaSchema.shape);

/**
 * `sandboxes`: all that are not destroyed, paused ones too. `callsAtOnce`: calls whose response has not begun. A bound that
 * is left out does not exist.
 */
export type Quota = z.infer<typeof quotaSchema>;

/** The quota of each tenant that has no entry of its own. */
const anyTenant = "*";

/** `acme:sandboxes=50,createsPerMinute=30 *:sandboxes=20`. */
export function parseQuotas(text: string): ReadonlyMap<string, Quota> {
  const form = {
    name: /^([a-z0-9][a-z0-9-]{0,62}|\*)$/,
    what: "a tenant, or `*`,",
    names: quotaNames,
  };
  return parseEntries(text, form, quotaSchema);
}

export function quotaOf(quotas: ReadonlyMap<string, Quota>, tenant: string): Quota {
  return quotas.get(tenant) ?? quotas.get(anyTenant) ?? {};
}
