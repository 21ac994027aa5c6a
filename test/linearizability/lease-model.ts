/**
 * The lease as a caller sees it: one holder at a time, and fences that only grow. A lease that may expire is an operation
 * `lose` of its own, without a response.
 */
import type { Model } from "./check.ts";

/** `who` names one request for the lease: its ticket or its token. */
export type LeaseInput = { verb: "acquire" | "release" | "renew" | "lose"; who: string };
export type LeaseOutput =
  | { granted: number /** The fence. */ }
  /** The holder, if the refusal names it. */
  | { refused: string | undefined }
  | { done: true }
  | { lost: true };

type State = {
  holder: string | undefined;
  fence: number;
  /** Granted by a response that was lost: the fence is above this one. */
  unseen: boolean;
  released: readonly string[];
};

export const leaseModel: Model<State, LeaseInput, LeaseOutput> = {
  first: { holder: undefined, fence: 0, unseen: false, released: [] },
  key: ({ holder, fence, unseen, released }) => `${holder} ${fence} ${unseen} ${released}`,
  step(state, { verb, who }, output) {
    const mine = state.holder === who;
    const freed = { ...state, holder: undefined, unseen: false };
    if (verb === "lose") return [mine ? freed : state];
    if (verb === "acquire") return acquire(state, who, output);
    if (verb === "renew") {
      return output === undefined || ("done" in output ? mine : !mine) ? [state] : [];
    }
    const released = { ...freed, released: [...state.released, who].sort() };
    const isReleased = state.released.includes(who);
    if (output === undefined) return [mine ? released : state];
    if ("done" in output) return mine ? [released] : isReleased ? [state] : [];
    return mine || isReleased ? [] : [state];
  },
};

function acquire(state: State, who: string, output: LeaseOutput | undefined): State[] {
  const { holder, fence, unseen } = state;
  const free = holder === undefined;
  if (output === undefined)
    return free ? [{ ...state, holder: who, unseen: true }, state] : [state];
  if ("granted" in output) {
    const above = output.granted > fence;
    const fits = free ? above : holder === who && (unseen ? above : output.granted === fence);
    return fits ? [{ ...state, holder: who, fence: output.granted, unseen: false }] : [];
  }
  if (!("refused" in output)) return holder === who ? [] : [state];
  return output.refused === undefined || output.refused === holder ? [state] : [];
}
