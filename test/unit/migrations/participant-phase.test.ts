/** The phases of a plan participant keep the property names of rows that earlier versions wrote. */
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import type {
  Participant,
  ParticipantPhase,
} from "../../../src/core/plan/participant/participant.ts";
import type { Host } from "../../../src/objects/sandbox/host.ts";
import {
  loadParticipant,
  saveParticipant,
} from "../../../src/objects/sandbox/plan/participant-rows.ts";

const vote = { yes: { checkpoint: "c2", changes: null } };
const ticket = "t1";

const phases: [ParticipantPhase, object][] = [
  [
    { name: "prepared", ticket, vote, preparedCheckpoint: "c2" },
    { name: "prepared", ticket, vote, artefact: "c2" },
  ],
  [
    {
      ...{ name: "restoring", ticket, startId: "s1", tries: 2, deferrals: 1 },
      result: { failed: "disk_full", passedAt: 7 },
    } as const,
    {
      ...{ name: "restoring", ticket, startId: "s1", tries: 2, waits: 1 },
      came: { failed: "disk_full", passedAt: 7 },
    },
  ],
  [
    { name: "restoring", ticket, startId: "s1", tries: 1, result: null },
    { name: "restoring", ticket, startId: "s1", tries: 1, came: null },
  ],
];

describe("a participant's phase", () => {
  it.each(phases)("[S35] is stored and loaded with the names of its rows (%j)", (phase, stored) => {
    const rows = new DatabaseSync(":memory:");
    rows.exec(
      "CREATE TABLE seat (one INTEGER PRIMARY KEY, plan TEXT, run INTEGER, phase TEXT, committed TEXT, last TEXT)",
    );
    const host = {
      sql: (query: string, ...bindings: (string | number | null)[]) =>
        rows.prepare(query).all(...bindings),
    } as unknown as Host;
    const participant: Participant = { plan: "p", run: 2, phase, committed: null, last: null };
    saveParticipant(host, participant);
    expect(JSON.parse(String(rows.prepare("SELECT phase FROM seat").get()?.phase))).toEqual(stored);
    expect(loadParticipant(host)).toEqual(participant);
  });
});
