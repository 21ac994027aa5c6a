/**
 * Assumptions about what a thousand sandboxes do in a month, and the resulting bill. The row counts the use of single
 * operations.
 */
import { addUse, billOf, noUse, objectGb, planDollars, sizes, sumOf, type Use } from "./prices.ts";

/** The counted use of one operation of each kind. */
export type Counted<Name extends string> = Record<Name, Use>;

export type Operation =
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
  /** Hours per sandbox and month. */
  runningHours: number;
  /** Share of the size's processor while it runs. */
  cpuPercent: number;
  /** Hours during which its object may not hibernate: running commands, followers, attached terminals. */
  attendedHours: number;
  work: Partial<Record<Operation, number>>;
};

const days = 20;
const timeOutsAnHour = 6;
const sandboxes = 1000;

export const scenarios: Scenario[] = [
  {
    name: "stored: created once, paused all month",
    ...{ size: "lite", runningHours: 0.1, cpuPercent: 10, attendedHours: 0 },
    work: { create: 1, pause: 1, "list of 20": 1 },
  },
  ...(["lite", "basic", "standard-1"] as const).map((size): Scenario => {
    const hours = 2 * days;
    return {
      name: `agents: 2 h a day on ${days} days, 120 commands of 3 s and 60 files per hour`,
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

type Bill = { objects: number; containers: number; logs: number; all: number; use: Use };

/** For all sandboxes, in dollars; the sum includes the price of the plan. */
export function monthOf(scenario: Scenario, each: Counted<Operation>, gbEach: number): Bill {
  const { vcpu, gib, diskGb } = sizes[scenario.size];
  const seconds = scenario.runningHours * 3600;
  const use = noUse();
  for (const [work, times] of Object.entries(scenario.work) as [Operation, number][]) {
    addUse(use, each[work], times * sandboxes);
  }
  const more: Partial<Use> = {
    objectGbSeconds: scenario.attendedHours * 3600 * objectGb,
    objectGbMonths: gbEach,
    containerCpuSeconds: (seconds * vcpu * scenario.cpuPercent) / 100,
    containerGibSeconds: seconds * gib,
    containerDiskGbSeconds: seconds * diskGb,
  };
  addUse(use, more, sandboxes);
  const bill = billOf(use);
  const containers =
    bill.containerCpuSeconds + bill.containerGibSeconds + bill.containerDiskGbSeconds;
  const all = sumOf(bill) + planDollars;
  const objects = sumOf(bill) - containers - bill.logEvents;
  return { objects, containers, logs: bill.logEvents, all, use };
}
