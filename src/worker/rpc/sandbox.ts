/**
 * Owns the verbs of one sandbox, as methods for other Workers; those about what runs in it stand in work.ts,
 * those about its files in files.ts.
 * Does not own the work: REST and RPC share operations.ts and the objects.
 */
import type { GateOptions, SandboxApi } from "../../protocol/api.ts";
import { type CheckpointInput, checkpointCallSchema } from "../../protocol/checkpoint.ts";
import { eventsQuerySchema } from "../../protocol/event.ts";
import { type ExecInput, type ExecResult, execCallSchema } from "../../protocol/exec.ts";
import { type AcquireInput, acquireCallSchema, renewCallSchema } from "../../protocol/lease.ts";
import { type MetadataPatch, metadataPatchSchema } from "../../protocol/metadata.ts";
import { type PortInput, portCallSchema, portNumberSchema } from "../../protocol/port.ts";
import { type Right, tokenCallSchema } from "../../protocol/rights.ts";
import { routes } from "../../protocol/verbs.ts";
import type { KeyedOptions } from "../../protocol/work-api.ts";
import { demandFor } from "../auth/auth.ts";
import { parseCall } from "../http/body.ts";
import { createToken, told } from "../http/operations.ts";
import { breakReason } from "../http/query.ts";
import { contentOf } from "../http/reply.ts";
import { badPort, portOf } from "../ports/port-traffic.ts";
import { checkpointIn } from "../special/checkpoints.ts";
import { gated, keyed } from "./calling.ts";
import { FileTarget } from "./files.ts";

export class SandboxTarget extends FileTarget implements SandboxApi {
  async get() {
    return told(await this.calling.object("read").get(this.calling.caller));
  }

  async start() {
    return told(await this.calling.object("lifecycle").start(this.calling.caller));
  }

  async pause(options: GateOptions & { force?: boolean; discardFiles?: boolean } = {}) {
    const object = this.calling.object("lifecycle");
    const { force = false, discardFiles = false } = options;
    return told(await object.pause(this.calling.caller, gated(options), { force, discardFiles }));
  }

  async touch() {
    return told(await this.calling.object("exec").touch(this.calling.caller));
  }

  async destroy(options: GateOptions & { force?: boolean } = {}) {
    const object = this.calling.object("lifecycle");
    return told(await object.destroy(this.calling.caller, gated(options), options.force ?? false));
  }

  async exec(call: ExecInput, options: KeyedOptions = {}): Promise<ExecResult> {
    const object = this.calling.object("exec");
    const checked = parseCall(execCallSchema, call);
    const requestId = crypto.randomUUID();
    const reply = await object.exec(this.calling.caller, keyed(options), checked, requestId);
    return contentOf(reply);
  }

  async makeCheckpoint(call: CheckpointInput = {}, options: GateOptions = {}) {
    const object = this.calling.object("lifecycle");
    const checked = parseCall(checkpointCallSchema, call);
    return told(await object.makeCheckpoint(this.calling.caller, gated(options), checked));
  }

  async checkpoints() {
    return told(await this.calling.object("read").checkpoints(this.calling.caller));
  }

  async checkpoint(id: string) {
    const object = this.calling.object("read");
    return told(await object.checkpoint(this.calling.caller, this.#checkpoint(id)));
  }

  async removeCheckpoint(id: string) {
    const object = this.calling.object("lifecycle");
    return told(await object.removeCheckpoint(this.calling.caller, this.#checkpoint(id)));
  }

  async restore(id: string, options: GateOptions = {}) {
    const object = this.calling.object("lifecycle");
    return told(await object.restore(this.calling.caller, gated(options), this.#checkpoint(id)));
  }

  async acquireLease(call: AcquireInput = {}) {
    const object = this.calling.object("lease");
    return told(await object.acquire(this.calling.caller, parseCall(acquireCallSchema, call)));
  }

  async renewLease(token: string, options: { ttlMs?: number } = {}) {
    const object = this.calling.object("lease");
    const { ttlMs } = parseCall(renewCallSchema, options);
    return told(await object.renew(this.calling.caller, token, ttlMs));
  }

  async releaseLease(token: string, options: { force?: boolean } = {}) {
    const object = this.calling.object("lease");
    return told(await object.release(this.calling.caller, token, options.force ?? false));
  }

  async breakLease(reason: string) {
    const object = this.calling.object("admin");
    return told(await object.breakLease(this.calling.caller, breakReason(reason)));
  }

  async lease() {
    return told(await this.calling.object("read").leaseState(this.calling.caller));
  }

  async metadata() {
    return told(await this.calling.object("read").metadata(this.calling.caller));
  }

  async patchMetadata(patch: MetadataPatch, options: { ifMatch?: number } = {}) {
    const object = this.calling.object("lifecycle");
    const change = parseCall(metadataPatchSchema, patch);
    return told(await object.patchMetadata(this.calling.caller, change, options.ifMatch));
  }

  async replaceMetadata(to: MetadataPatch, options: { ifMatch: number }) {
    const object = this.calling.object("lifecycle");
    const all = parseCall(metadataPatchSchema, to);
    return told(await object.replaceMetadata(this.calling.caller, all, options.ifMatch));
  }

  async events(query: { after?: number; limit?: number } = {}) {
    const object = this.calling.object("read");
    return told(await object.events(this.calling.caller, parseCall(eventsQuerySchema, query)));
  }

  async streamEvents({ after }: { after?: number } = {}) {
    const object = this.calling.object("read");
    const query = parseCall(eventsQuerySchema, after === undefined ? {} : { after });
    return told(await object.followEvents(this.calling.caller, query.after));
  }

  async createToken(call: { rights: Right[]; ttlMs?: number }) {
    this.calling.object("key");
    return createToken(
      this.calling.env,
      this.calling.caller,
      this.calling.id,
      parseCall(tokenCallSchema, call),
    );
  }

  async revokeTokens() {
    const { caller, id } = this.calling;
    demandFor(caller, routes.revokeTokens, id);
    told(await this.calling.object("key").revokeTokens(caller));
  }

  async createTicket() {
    return told(
      await this.calling.object(["lease", "terminal"]).connectTicket(this.calling.caller),
    );
  }

  async openPort(call: PortInput) {
    const object = this.calling.object("lifecycle");
    const checked = parseCall(portCallSchema, call);
    const { caller, id, url } = this.calling;
    return portOf(url, id, checked, told(await object.openPort(caller, checked)));
  }

  async ports() {
    return told(await this.calling.object("read").ports(this.calling.caller));
  }

  async closePort(port: number) {
    const object = this.calling.object("lifecycle");
    if (!portNumberSchema.safeParse(port).success) throw badPort();
    told(await object.closePort(this.calling.caller, port));
  }

  #checkpoint(id: string): string {
    return checkpointIn(this.calling.id, id);
  }
}
