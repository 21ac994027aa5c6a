/** What a tenant may have at once, as the operator configures it. */
import { z } from "zod";

const boundSchema = z
  .string()
  .regex(/^\d{1,9}$/, "must be a whole number")
  .transform(Number)
  .optional();

const quotaSchema = z.strictObject({ sandboxes: boundSchema, createsPerMinute: boundSchema });

/** `sandboxes`: all that are not destroyed, paused ones too. A bound that is left out does not exist. */
export type Quota = z.infer<typeof quotaSchema>;

/** The quota of each tenant that has no entry of its own. */
const anyTenant = "*";

/** Entries are separated by white space: `acme:sandboxes=50,createsPerMinute=30 *:sandboxes=20`. */
export function parseQuotas(text: string): ReadonlyMap<string, Quota> {
  const quotas = new Map<string, Quota>();
  for (const entry of text.split(/\s+/).filter((part) => part !== "")) {
    const [, tenant = "", rest = ""] = /^([a-z0-9][a-z0-9-]{0,62}|\*):(.+)$/.exec(entry) ?? [];
    if (tenant === "" || quotas.has(tenant))
      throw new Error(`${entry}: must begin with a tenant of its own, or \`*\`, and a colon`);
    const pairs = rest.split(",").map((pair) => [...pair.split("=", 2), ""]);
    const read = quotaSchema.safeParse(Object.fromEntries(pairs));
    if (!read.success) {
      const [issue] = read.error.issues;
      throw new Error(`${tenant}: ${issue?.path.join(".") ?? ""} ${issue?.message ?? ""}`.trim());
    }
    quotas.set(tenant, read.data);
  }
  return quotas;
}

export function quotaOf(quotas: ReadonlyMap<string, Quota>, tenant: string): Quota {
  return quotas.get(tenant) ?? quotas.get(anyTenant) ?? {};
}
