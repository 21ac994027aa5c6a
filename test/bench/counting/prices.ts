/**
 * The platform's public prices, as read on the date below, and the cost of a given use. See rows/cost.ts for the
 * counted use and scenarios.ts for the assumed one.
 */

/** The date on which the prices (in US dollars) were read. */
export const pricesReadOn = "2026-11-18";

type Price = { included: number; perMillion: number };

const prices = {
  /** Requests to the Worker. */
  workerRequests: { included: 10e6, perMillion: 0.3 },
  workerCpuMs: { included: 30e6, perMillion: 0.02 },
  /** Calls of objects from anywhere, and alarms. */
  objectRequests: { included: 1e6, perMillion: 0.15 },
  /** Each object counts as 128 MB. */
  objectGbSeconds: { included: 400_000, perMillion: 12.5 },
  rowsRead: { included: 25e9, perMillion: 0.001 },
  rowsWritten: { included: 50e6, perMillion: 1 },
  objectGbMonths: { included: 5, perMillion: 0.2e6 },
  /** One per call of the Worker and of objects, and one per log line; wrangler.toml enables them. */
  logEvents: { included: 20e6, perMillion: 0.6 },
  containerCpuSeconds: { included: 375 * 60, perMillion: 20 },
  containerGibSeconds: { included: 25 * 3600, perMillion: 2.5 },
  containerDiskGbSeconds: { included: 200 * 3600, perMillion: 0.07 },
} as const satisfies Record<string, Price>;

export type Use = Record<keyof typeof prices, number>;
export const objectGb = 0.128;
export const planDollars = 5;

/** Memory and disk are billed as provisioned, the processor as used. */
export const sizes = {
  lite: { vcpu: 1 / 16, gib: 0.25, diskGb: 2 },
  basic: { vcpu: 1 / 4, gib: 1, diskGb: 4 },
  "standard-1": { vcpu: 1 / 2, gib: 4, diskGb: 8 },
} as const;

export function noUse(): Use {
  const kinds = Object.keys(prices) as (keyof Use)[];
  return Object.fromEntries(kinds.map((kind) => [kind, 0])) as Use;
}

export function addUse(to: Use, use: Partial<Use>, times = 1): void {
  for (const [kind, amount] of Object.entries(use) as [keyof Use, number][])
    to[kind] += amount * times;
}

/** The marginal cost, without the included amounts. */
export function dollarsOf(use: Use): Use {
  return applyPrices(use, (amount) => amount);
}

/** The bill of a month, above what the plan includes. */
export function billOf(use: Use): Use {
  return applyPrices(use, (amount, { included }) => Math.max(0, amount - included));
}

export function sumOf(dollars: Use): number {
  return Object.values(dollars).reduce((sum, amount) => sum + amount, 0);
}

function applyPrices(use: Use, billed: (amount: number, price: Price) => number): Use {
  const kinds = Object.entries(prices) as [keyof Use, Price][];
  return Object.fromEntries(
    kinds.map(([kind, price]) => [kind, (billed(use[kind], price) * price.perMillion) / 1e6]),
  ) as Use;
}
