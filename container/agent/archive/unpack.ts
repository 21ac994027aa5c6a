/**
 * Owns unpacking the body of one call, from its first byte to its answer, and what a refusal says of how far it got.
 * Does not own the steps.
 */

import type { Unpacked } from "../../../src/protocol/archive.ts";
import { BerthError } from "../../../src/protocol/error-codes.ts";
import { bodyOf } from "../files/body.ts";
import type { Turn } from "../files/gated-write.ts";
import { type Target, textOf } from "../files/paths.ts";
import { isCode, refusalOf } from "../files/refusal.ts";
import { type User, withRightsOf } from "../kernel/libc.ts";
import { type Compression, decompressed } from "./compression.ts";
import { badArchive, type Member } from "./member.ts";
import { ArchiveReader, measured } from "./reader.ts";
import { prepare } from "./staging.ts";
import { UnpackedTree } from "./unpacked-tree.ts";

type Asked = { target: Target; user: User | undefined; compression: Compression };

export async function unpack(request: Request, asked: Asked, turn: Turn): Promise<Unpacked> {
  const { target, user } = asked;
  const staging = await prepare(target, user).catch((error) => {
    throw refusalOf(error, target.shown);
  });
  const { root, isOwn } = staging;
  const tree = new UnpackedTree(root, { isOwn, user, pass: turn.pass });
  const reader = new ArchiveReader(membersOf(request, asked.compression, turn.signal));
  let member: Member | undefined;
  try {
    for (member = await reader.next(); member !== undefined; member = await reader.next()) {
      await tree.add(member, reader.contents(member));
    }
    tree.leave();
    withRightsOf(user, () => {
      turn.pass();
      staging.take(tree.own);
    });
    return { entries: tree.entries, bytes: tree.bytes };
  } catch (error) {
    throw refused(error, asked, { tree, member });
  } finally {
    await reader.close();
    tree.end();
    await staging.end();
  }
}

function membersOf(
  request: Request,
  compression: Compression,
  signal: AbortSignal,
): AsyncIterable<Uint8Array> {
  let packed = 0;
  async function* counted() {
    for await (const bytes of bodyOf(request, signal)) {
      packed += bytes.length;
      yield bytes;
    }
  }
  return measured(decompressed(counted(), compression), () => packed);
}

/** What a member meets because of what the archive says, and of what is there. */
const inTheWay = ["ENOTDIR", "EISDIR", "ENOTEMPTY", "EEXIST", "ELOOP", "EINVAL", "ENAMETOOLONG"];

function refused(
  thrown: unknown,
  { target }: Asked,
  { tree, member }: { tree: UnpackedTree; member: Member | undefined },
): unknown {
  const shown = member === undefined ? target.shown : textOf(member.path);
  const error = refusalOf(meaningOf(thrown), shown);
  if (!(error instanceof BerthError)) return error;
  const { entries, bytes } = tree;
  const how = { entries, bytes, member: member === undefined ? null : shown };
  return new BerthError(error.code, error.message, {
    ...(error.hint === undefined ? {} : { hint: error.hint }),
    facts: { ...error.facts, ...how },
  });
}

function meaningOf(thrown: unknown): unknown {
  if (isCode(thrown, "EXDEV"))
    return badArchive("holds a member whose way leads out of the folder");
  if (isCode(thrown, "ENOENT")) return badArchive("holds a link to what is not there");
  if (!isCode(thrown, ...inTheWay)) return thrown;
  return badArchive(
    "holds a member that cannot take its place: something of another kind is there",
  );
}
