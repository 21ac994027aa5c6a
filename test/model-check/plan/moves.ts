/**
 * The moves of the model of plans: a request is sent, a request or a response arrives, the plan restarts, its time is over,
 * a lease is broken, somebody works in a member.
 */

import { type ParticipantEvent, stepParticipant } from "../../../src/core/plan/participant/step.ts";
import { pendingRunRequests } from "../../../src/core/plan/pending.ts";
import type { PartResult, PlanRecord, Vote } from "../../../src/core/plan/record.ts";
import { beginRun, stepRun } from "../../../src/core/plan/run.ts";
import type { Move as SearchMove } from "../search.ts";
import type { MemberWorld, Request, Response, World } from "./world.ts";

export type Move = SearchMove<World>;

export type Bounds = { runs: number; breaks: number; trees: number };

/** Guards that the model can leave out, to show that they matter. */
export type Hole =
  | "members forget which runs have ended"
  | "the lease ends by time"
  | "an undecided run commits after a crash"
  | "the decision is sent before it is written"
  | "one no is not enough";

export function movesOf(world: World, bounds: Bounds, hole?: Hole): Move[] {
  return [
    ...beginRuns(world, bounds),
    ...sendRequests(world, hole),
    ...world.requests.flatMap((request) => deliverRequest(world, request, hole)),
    ...world.responses.flatMap((response) => deliverResponse(world, response, hole)),
    ...restartPlan(world, hole),
    ...disturbances(world, bounds, hole),
  ];
}

function beginRuns(world: World, { runs }: Bounds): Move[] {
  if (world.plan.newestRun >= runs) return [];
  return (["commit", "rollback"] as const).flatMap((kind) => {
    const begun = beginRun(world.plan, { kind, mode: "atomic", allowEmpty: true, waitMs: 1 }, 0);
    return "newRun" in begun
      ? [{ name: `begin a ${kind}`, to: { ...world, plan: begun.plan } }]
      : [];
  });
}

function sendRequests(world: World, hole: Hole | undefined): Move[] {
  const { run } = world.plan;
  const pending = pendingRunRequests(world.plan);
  const early =
    hole === "the decision is sent before it is written" && run !== null && run.decision === null
      ? run.parts
          .filter(({ vote }) => vote !== null && "yes" in vote)
          .map(({ sandbox }) => ({ type: "finish" as const, sandbox, decision: "commit" as const }))
      : [];
  return [...pending, ...early].flatMap((ask): Move[] => {
    if (run === null) return [];
    const about = { run: run.n, member: ask.sandbox as string };
    const request: Request | undefined =
      ask.type === "hold"
        ? { type: "hold", ...about }
        : ask.type === "prepare"
          ? { type: "prepare", ...about, kind: run.kind }
          : ask.type === "finish"
            ? { type: "finish", ...about, decision: ask.decision }
            : undefined;
    if (request === undefined || has(world.requests, request)) return [];
    const to = { ...world, requests: sorted([...world.requests, request]) };
    return [{ name: `ask ${about.member} to ${request.type}`, to }];
  });
}

function deliverRequest(world: World, request: Request, hole: Hole | undefined): Move[] {
  const { member: name, run } = request;
  const member = world.members[name] as MemberWorld;
  if (request.type === "hold") return deliverHold(world, request, member, hole);
  if (request.type === "prepare") return deliverPrepare(world, request, member, hole);
  const { decision } = request;
  const done = stepMember(member, { type: "finish", plan: "p", run, decision, now: 0 }, hole);
  if ("restore" in done.reply)
    return restoreMember(world, request, done.member, done.reply.restore);
  return "ended" in done.reply ? respondEnded(world, request, done.member, done.reply.ended) : [];
}

function deliverHold(
  world: World,
  { run, member: name }: Request,
  member: MemberWorld,
  hole: Hole | undefined,
): Move[] {
  const ticket = `run ${run}`;
  const answer = (to: MemberWorld, held: boolean) =>
    respond(world, name, to, { type: "hold", run, member: name, held });
  const holding = stepMember(member, { type: "hold", plan: "p", run, ticket }, hole);
  const { lease, participant } = holding.member;
  if (!("ticket" in holding.reply)) return answer(holding.member, false);
  if (lease === holding.reply.ticket) return answer(holding.member, true);
  if (lease !== null || participant?.phase.name !== "holding") return answer(holding.member, false);
  const leased = { ...holding.member, lease: ticket, wasBroken: false };
  const held = stepMember(leased, { type: "held", plan: "p", run, ticket }, hole);
  return answer(held.member, "done" in held.reply);
}

function deliverPrepare(
  world: World,
  request: Extract<Request, { type: "prepare" }>,
  member: MemberWorld,
  hole: Hole | undefined,
): Move[] {
  const { run, kind, member: name } = request;
  const voted = (vote: Vote): Response => ({ type: "prepare", run, member: name, vote });
  const no = voted({ no: { code: "lease_lost", message: "" } });
  const may = stepMember(member, { type: "prepare", plan: "p", run }, hole);
  if ("vote" in may.reply) return respond(world, name, may.member, voted(may.reply.vote));
  if (!("ticket" in may.reply) || may.member.lease !== may.reply.ticket) {
    return respond(world, name, may.member, no);
  }
  const { ticket } = may.reply;
  const preparedCheckpoint = kind === "commit" ? `c${run}` : null;
  const checkpoint = preparedCheckpoint ?? may.member.participant?.committed?.checkpoint ?? null;
  const saving =
    preparedCheckpoint === null
      ? may.member
      : { ...may.member, saved: { ...may.member.saved, [preparedCheckpoint]: may.member.tree } };
  const vote = { yes: { checkpoint, changes: null } };
  const about = { plan: "p", run, ticket, vote, preparedCheckpoint };
  const done = stepMember(saving, { type: "prepared", ...about }, hole);
  const response = "vote" in done.reply ? voted(done.reply.vote) : no;
  return [
    ...respond(world, name, done.member, response),
    // Preparing may also fail.
    ...respond(world, name, may.member, no).map((move) => ({ ...move, name: `${name} cannot` })),
  ];
}

/** The restore itself is one step here, because it belongs to the sandbox. */
function restoreMember(
  world: World,
  request: Extract<Request, { type: "finish" }>,
  member: MemberWorld,
  checkpoint: string,
): Move[] {
  const { run, decision, member: name } = request;
  const startId = `s${run}`;
  const begun = stepMember(member, { type: "restoring", run, startId });
  const tree = begun.member.saved[checkpoint];
  if (tree === undefined) throw new Error(`${name} would go back to what is not saved`);
  const participant = begun.member.participant;
  if (participant === null || participant.phase.name !== "restoring")
    throw new Error("it is restoring");
  const back = {
    ...begun.member,
    tree,
    participant: { ...participant, phase: { ...participant.phase, result: "restored" as const } },
  };
  const done = stepMember(back, { type: "finish", plan: "p", run, decision, now: 0 });
  if (!("ended" in done.reply)) throw new Error("it has come back");
  return respondEnded(world, request, done.member, done.reply.ended);
}

function deliverResponse(world: World, response: Response, hole: Hole | undefined): Move[] {
  const { run: n, member: sandbox } = response;
  const vote =
    response.type === "prepare"
      ? response.vote
      : { no: { code: "lease_wait_timeout", message: "" } };
  const ignores = hole === "one no is not enough" && response.type === "prepare" && "no" in vote;
  const counted = ignores ? { yes: { checkpoint: null, changes: null } } : vote;
  const plan =
    response.type === "finish"
      ? stepRun(world.plan, { type: "ended", n, sandbox, ended: response.ended }, 0)
      : response.type === "hold" && response.held
        ? stepRun(world.plan, { type: "held", n, sandbox }, 0)
        : stepRun(world.plan, { type: "voted", n, sandbox, vote: counted }, 0);
  return same(plan, world.plan)
    ? []
    : [{ name: `the response of ${sandbox} to ${response.type} arrives`, to: { ...world, plan } }];
}

function restartPlan(world: World, hole: Hole | undefined): Move[] {
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

function stepMember(member: MemberWorld, event: ParticipantEvent, hole?: Hole) {
  const { participant } = member;
  const forgets =
    hole === "members forget which runs have ended" &&
    participant?.phase.name === "over" &&
    (event.type === "hold" || event.type === "prepare");
  const from =
    forgets && participant !== null
      ? { ...participant, run: Math.min(participant.run, event.run - 1), last: null }
      : participant;
  const move = stepParticipant(from, event);
  const lease =
    member.lease !== null && move.releases.tickets.includes(member.lease) ? null : member.lease;
  const saved = Object.fromEntries(
    Object.entries(member.saved).filter(([id]) => !move.releases.checkpoints.includes(id)),
  );
  return { reply: move.reply, member: { ...member, participant: move.participant, lease, saved } };
}

function respond(world: World, name: string, member: MemberWorld, response: Response): Move[] {
  const responses = has(world.responses, response)
    ? world.responses
    : sorted([...world.responses, response]);
  const to = { ...world, responses, members: { ...world.members, [name]: member } };
  return [{ name: `${name} is asked to ${response.type} in run ${response.run}`, to }];
}

function respondEnded(
  world: World,
  { run, member: name }: Request,
  member: MemberWorld,
  ended: PartResult,
): Move[] {
  const outcomes = { ...world.outcomes, [`${run} ${name}`]: ended.outcome };
  return respond({ ...world, outcomes }, name, member, {
    type: "finish",
    run,
    member: name,
    ended,
  });
}

function has(all: readonly object[], value: object): boolean {
  const text = textOf(value);
  return all.some((other) => textOf(other) === text);
}

function sorted<T extends object>(all: T[]): T[] {
  return all.sort((value, other) => (textOf(value) < textOf(other) ? -1 : 1));
}

const texts = new WeakMap<object, string>();

function textOf(value: object): string {
  const known = texts.get(value);
  if (known !== undefined) return known;
  const text = JSON.stringify(value);
  texts.set(value, text);
  return text;
}

function same(value: PlanRecord, other: PlanRecord): boolean {
  return value === other || JSON.stringify(value) === JSON.stringify(other);
}
