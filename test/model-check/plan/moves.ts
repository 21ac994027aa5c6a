/**
 * Owns what can happen next in the world of the model: the plan asks, a question arrives, an answer arrives, the plan
 * is lost and comes back, its time is over, a lease is broken, somebody works in a member.
 */

import { type ParticipantEvent, stepParticipant } from "../../../src/core/plan/participant/step.ts";
import { pendingRunRequests } from "../../../src/core/plan/pending.ts";
import type { PlanRecord } from "../../../src/core/plan/record.ts";
import { beginRun, stepRun } from "../../../src/core/plan/run.ts";
import type { Answered, MemberWorld, Question, World } from "./world.ts";

export type Move = { name: string; to: World };

export type Bounds = { runs: number; breaks: number; trees: number };

/** What the model can leave out, to show that it matters. */
export type Hole =
  | "members forget which runs are over"
  | "the lease ends by time"
  | "an undecided run commits after a crash"
  | "the decision is told before it is written"
  | "one no is not enough";

export function movesOf(world: World, bounds: Bounds, hole?: Hole): Move[] {
  return [
    ...begins(world, bounds),
    ...asks(world, hole),
    ...world.questions.flatMap((question) => arrives(world, question, hole)),
    ...world.answers.flatMap((answered) => isAnswered(world, answered, hole)),
    ...crashes(world, hole),
    ...disturbances(world, bounds, hole),
  ];
}

function begins(world: World, { runs }: Bounds): Move[] {
  if (world.plan.newestRun >= runs) return [];
  return (["commit", "rollback"] as const).flatMap((kind) => {
    const begun = beginRun(world.plan, { kind, mode: "atomic", allowEmpty: true, waitMs: 1 }, 0);
    return "newRun" in begun
      ? [{ name: `begin a ${kind}`, to: { ...world, plan: begun.plan } }]
      : [];
  });
}

function asks(world: World, hole: Hole | undefined): Move[] {
  const { run } = world.plan;
  const asked = pendingRunRequests(world.plan);
  const early =
    hole === "the decision is told before it is written" && run !== null && run.decision === null
      ? run.parts
          .filter(({ vote }) => vote !== null && "yes" in vote)
          .map(({ sandbox }) => ({ type: "finish" as const, sandbox, decision: "commit" as const }))
      : [];
  return [...asked, ...early].flatMap((ask): Move[] => {
    if (run === null) return [];
    const about = { run: run.n, member: ask.sandbox as string };
    const question: Question | undefined =
      ask.type === "hold"
        ? { ask: "hold", ...about }
        : ask.type === "prepare"
          ? { ask: "prepare", ...about, kind: run.kind }
          : ask.type === "finish"
            ? { ask: "finish", ...about, decision: ask.decision }
            : undefined;
    if (question === undefined || has(world.questions, question)) return [];
    const to = { ...world, questions: sorted([...world.questions, question]) };
    return [{ name: `ask ${about.member} to ${question.ask}`, to }];
  });
}

function arrives(world: World, question: Question, hole: Hole | undefined): Move[] {
  const { member: name, run } = question;
  const member = world.members[name] as MemberWorld;
  if (question.ask === "hold") {
    const ticket = `run ${run}`;
    const asked = take(member, { type: "hold", plan: "p", run, ticket }, hole);
    if (!("ticket" in asked.reply)) return said(world, name, asked.member, hold(question, false));
    if (asked.member.lease === asked.reply.ticket) {
      return said(world, name, asked.member, hold(question, true));
    }
    if (asked.member.lease !== null || asked.member.seat?.phase.name !== "holding") {
      return said(world, name, asked.member, hold(question, false));
    }
    const leased = { ...asked.member, lease: ticket, wasBroken: false };
    const held = take(leased, { type: "held", plan: "p", run, ticket }, hole);
    return said(world, name, held.member, hold(question, "done" in held.reply));
  }
  if (question.ask === "prepare") return prepares(world, question, member, hole);
  const { decision } = question;
  const done = take(member, { type: "finish", plan: "p", run, decision, now: 0 }, hole);
  if ("restore" in done.reply) return restores(world, question, done.member, done.reply.restore);
  if (!("ended" in done.reply)) return [];
  const { ended } = done.reply;
  const outcomes = { ...world.outcomes, [`${run} ${name}`]: ended.outcome };
  return said({ ...world, outcomes }, name, done.member, {
    to: "finish",
    run,
    member: name,
    ended,
  });
}

function prepares(
  world: World,
  question: Extract<Question, { ask: "prepare" }>,
  member: MemberWorld,
  hole: Hole | undefined,
): Move[] {
  const { run, kind, member: name } = question;
  const no: Answered = {
    to: "prepare",
    run,
    member: name,
    vote: { no: { code: "lease_lost", message: "" } },
  };
  const may = take(member, { type: "prepare", plan: "p", run }, hole);
  if ("vote" in may.reply) {
    return said(world, name, may.member, {
      to: "prepare",
      run,
      member: name,
      vote: may.reply.vote,
    });
  }
  if (!("ticket" in may.reply) || may.member.lease !== may.reply.ticket) {
    return said(world, name, may.member, no);
  }
  const { ticket } = may.reply;
  const preparedCheckpoint = kind === "commit" ? `c${run}` : null;
  const checkpoint = preparedCheckpoint ?? may.member.seat?.committed?.checkpoint ?? null;
  const saving =
    preparedCheckpoint === null
      ? may.member
      : { ...may.member, saved: { ...may.member.saved, [preparedCheckpoint]: may.member.tree } };
  const vote = { yes: { checkpoint, changes: null } };
  const about = { plan: "p", run, ticket, vote, preparedCheckpoint };
  const done = take(saving, { type: "prepared", ...about }, hole);
  const answered: Answered =
    "vote" in done.reply ? { to: "prepare", run, member: name, vote: done.reply.vote } : no;
  return [
    ...said(world, name, done.member, answered),
    // It may fail as well.
    ...said(world, name, may.member, no).map((move) => ({ ...move, name: `${name} cannot` })),
  ];
}

/** The restore itself is the sandbox's own: it is begun and done in one step here. */
function restores(
  world: World,
  question: Extract<Question, { ask: "finish" }>,
  member: MemberWorld,
  checkpoint: string,
): Move[] {
  const { run, decision, member: name } = question;
  const startId = `s${run}`;
  const begun = take(member, { type: "restoring", run, startId });
  const tree = begun.member.saved[checkpoint];
  if (tree === undefined) throw new Error(`${name} would go back to what is not saved`);
  const seat = begun.member.seat;
  if (seat === null || seat.phase.name !== "restoring") throw new Error("it is restoring");
  const back = {
    ...begun.member,
    tree,
    seat: { ...seat, phase: { ...seat.phase, result: "restored" as const } },
  };
  const done = take(back, { type: "finish", plan: "p", run, decision, now: 0 });
  if (!("ended" in done.reply)) throw new Error("it has come back");
  const { ended } = done.reply;
  const outcomes = { ...world.outcomes, [`${run} ${name}`]: ended.outcome };
  return said({ ...world, outcomes }, name, done.member, {
    to: "finish",
    run,
    member: name,
    ended,
  });
}

function isAnswered(world: World, answered: Answered, hole: Hole | undefined): Move[] {
  const { run: n, member: sandbox } = answered;
  const vote =
    answered.to === "prepare" ? answered.vote : { no: { code: "lease_wait_timeout", message: "" } };
  const ignores = hole === "one no is not enough" && answered.to === "prepare" && "no" in vote;
  const told = ignores ? { yes: { checkpoint: null, changes: null } } : vote;
  const plan =
    answered.to === "finish"
      ? stepRun(world.plan, { type: "ended", n, sandbox, ended: answered.ended }, 0)
      : answered.to === "hold" && answered.held
        ? stepRun(world.plan, { type: "held", n, sandbox }, 0)
        : stepRun(world.plan, { type: "voted", n, sandbox, vote: told }, 0);
  return same(plan, world.plan)
    ? []
    : [{ name: `${sandbox} answered ${answered.to}`, to: { ...world, plan } }];
}

function crashes(world: World, hole: Hole | undefined): Move[] {
  const { run } = world.plan;
  if (run === null || run.decision !== null) return [];
  const plan = stepRun(world.plan, { type: "instance" }, 0);
  const went =
    hole === "an undecided run commits after a crash" && run.parts.some(({ vote }) => vote !== null)
      ? { ...world.plan, run: { ...run, decision: { go: true, at: 0 } } }
      : plan;
  return [{ name: "the plan comes back", to: { ...world, plan: went } }];
}

function disturbances(world: World, { breaks, trees }: Bounds, hole: Hole | undefined): Move[] {
  const broken = Object.values(world.members).filter(({ wasBroken }) => wasBroken).length;
  return Object.entries(world.members).flatMap(([name, member]) => {
    const moves: Move[] = [];
    const put = (to: MemberWorld) => ({ ...world, members: { ...world.members, [name]: to } });
    if (member.lease === null && member.tree < trees) {
      moves.push({ name: `work in ${name}`, to: put({ ...member, tree: member.tree + 1 }) });
    }
    if (member.lease !== null && broken < breaks) {
      const to = put({ ...member, lease: null, wasBroken: true });
      moves.push({ name: `the lease of ${name} is broken`, to });
    }
    if (member.lease !== null && hole === "the lease ends by time") {
      moves.push({ name: `the lease of ${name} ends`, to: put({ ...member, lease: null }) });
    }
    return moves;
  });
}

function take(member: MemberWorld, event: ParticipantEvent, hole?: Hole) {
  const { seat } = member;
  const forgets =
    hole === "members forget which runs are over" &&
    seat?.phase.name === "over" &&
    (event.type === "hold" || event.type === "prepare");
  const from =
    forgets && seat !== null
      ? { ...seat, run: Math.min(seat.run, event.run - 1), last: null }
      : seat;
  const move = stepParticipant(from, event);
  const lease =
    member.lease !== null && move.releases.tickets.includes(member.lease) ? null : member.lease;
  const saved = Object.fromEntries(
    Object.entries(member.saved).filter(([id]) => !move.releases.checkpoints.includes(id)),
  );
  return { reply: move.reply, member: { ...member, seat: move.participant, lease, saved } };
}

function said(world: World, name: string, member: MemberWorld, answered: Answered): Move[] {
  const answers = has(world.answers, answered)
    ? world.answers
    : sorted([...world.answers, answered]);
  const to = { ...world, answers, members: { ...world.members, [name]: member } };
  return [{ name: `${name} is asked to ${answered.to} in run ${answered.run}`, to }];
}

function hold({ run, member }: Question, held: boolean): Answered {
  return { to: "hold", run, member, held };
}

function has(all: readonly object[], one: object): boolean {
  const text = textOf(one);
  return all.some((other) => textOf(other) === text);
}

function sorted<T extends object>(all: T[]): T[] {
  return all.sort((one, other) => (textOf(one) < textOf(other) ? -1 : 1));
}

const texts = new WeakMap<object, string>();

function textOf(one: object): string {
  const known = texts.get(one);
  if (known !== undefined) return known;
  const text = JSON.stringify(one);
  texts.set(one, text);
  return text;
}

function same(one: PlanRecord, other: PlanRecord): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}
