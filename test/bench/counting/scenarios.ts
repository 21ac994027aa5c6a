/**
 * Owns what a thousand sandboxes are assumed to do in a month, and its bill: assumptions here, counts from the row.
 * Does not own prices (prices.ts), nor counting.
 */
import { added, billOf, noUse, objectGb, planDollars, sizes, sumOf, type Use } from "./prices.ts";

/** What one of each is: counted by the row. */
export type Counted<Name extends string> = Record<Name, Use>;

export type Work =
  | "create"
  | "destroy"
  | "exec"
  | "session exec"
  | "lease acquire + release"
  | "file put"
  | "file get"
  | "list of 20"
  | "pause"
  | "start"
  | "idle time-out in use"
  | "terminal opened";

type Scenario = {
  name: string;
  size: keyof typeof sizes;
  /** Of one sandbox in a month. */
  runningHours: number;
  /** Of its size's processor while it runs. */
  cpuPercent: number;
  /** In which its object may not sleep: commands under way, followers, attached terminals. */
  attendedHours: number;
  work: Partial<Record<Work, number>>;
};

const days = 20;
const timeOutsAnHour = 6;
const sandboxes = 1000;

export const scenarios: Scenario[] = [
  {
    name: "kept: made once, paused all month",
    ...{ size: "lite", runningHours: 0.1, cpuPercent: 10, attendedHours: 0 },
    work: { create: 1, pause: 1, "list of 20": 1 },
  },
  ...(["lite", "basic", "standard-1"] as const).map((size): Scenario => {
    const hours = 2 * days;
    return {
      name: `agents: 2 h a day on ${days} days, 120 commands of 3 s and 60 files an hour`,
      ...{ size, runningHours: hours, cpuPercent: 20, attendedHours: (hours * 120 * 3) / 3600 },
      work: {
        create: 1,
        start: days,
        pause: days,
        exec: 120 * hours,
        "file put": 40 * hours,
        "file get": 20 * hours,
        "list of 20": 4 * hours,
        "idle time-out in use": timeOutsAnHour * hours,
      },
    };
  }),
  {
    name: `CI: 10 new ones a day on ${days} days, 10 min each, 40 commands in a session`,
    ...{ size: "basic", runningHours: (200 * 10) / 60, cpuPercent: 60 },
    attendedHours: (200 * 9) / 60,
    work: {
      create: 200,
      destroy: 200,
      "session exec": 200 * 40,
      "lease acquire + release": 200,
      "file put": 200,
      "idle time-out in use": 200,
    },
  },
  {
    name: `people: a terminal for 4 h a day on ${days} days`,
    ...{ size: "basic", runningHours: 4 * days, cpuPercent: 10, attendedHours: 4 * days },
    work: {
      create: 1,
      start: days,
      pause: days,
      "terminal opened": 2 * days,
      "list of 20": 2 * days,
      "idle time-out in use": timeOutsAnHour * 4 * days,
    },
  },
];

export type Bill = { objects: number; containers: number; logs: number; all: number; use: Use };

/** Of all sandboxes, in dollars, with the plan's own price in the sum. */
export function monthOf(scenario: Scenario, each: Counted<Work>, gbEach: number): Bill {
  const { vcpu, gib, diskGb } = sizes[scenario.size];
  const seconds = scenario.runningHours * 3600;
  const use = noUse();
  for (const [work, times] of Object.entries(scenario.work) as [Work, number][]) {
    added(use, each[work], times * sandboxes);
  }
  const more: Partial<Use> = {
    objectGbSeconds: scenario.attendedHours * 3600 * objectGb,
    objectGbMonths: gbEach,
    containerCpuSeconds: (seconds * vcpu * scenario.cpuPercent) / 100,
    containerGibSeconds: seconds * gib,
    containerDiskGbSeconds: seconds * diskGb,
  };
  added(use, more, sandboxes);
  const bill = billOf(use);
  const containers =
    bill.containerCpuSeconds + bill.containerGibSeconds + bill.containerDiskGbSeconds;
  const all = sumOf(bill) + planDollars;
  const objects = sumOf(bill) - containers - bill.logEvents;
  return { objects, containers, logs: bill.logEvents, all, use };
}
