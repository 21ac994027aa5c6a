/** Unpacks the body of one call, and says in a failure how far it got. */
import { BerthError } from "../../../src/protocol/error-codes.ts";
import type { Unpacked } from "../../../src/protocol/file.ts";
import { bodyOf } from "../files/body.ts";
import { toFileError } from "../files/file-errors.ts";
import { type Target, textOf } from "../files/paths.ts";
import { hasCode } from "../kernel/error-codes.ts";
import { type User, withUserRights } from "../kernel/libc.ts";
import { type Compression, decompressed } from "./compression.ts";
import { badArchive, type Member } from "./header.ts";
import { ArchiveReader, limitRatio } from "./reader.ts";
import { prepare } from "./staging.ts";
import { UnpackedTree } from "./unpacked-tree.ts";

type UnpackOptions = { target: Target; user: User | undefined; compression: Compression };

export async function unpack(
  request: Request,
  options: UnpackOptions,
  signal: AbortSignal,
): Promise<Unpacked> {
  const { target, user } = options;
  const staging = await prepare(target, user).catch((error) => {
    throw toFileError(error, target.shown);
  });
  const tree = new UnpackedTree(staging, user, signal);
  const reader = new ArchiveReader(membersOf(request, options.compression, signal));
  let member: Member | undefined;
  try {
    for (member = await reader.next(); member !== undefined; member = await reader.next()) {
      await tree.add(member, reader.contents(member));
    }
    tree.leave();
    withUserRights(user, () => {
      signal.throwIfAborted();
      staging.moveIntoPlace(tree.own);
    });
    return { entries: tree.entries, bytes: tree.bytes };
  } catch (error) {
    throw withProgress(error, options, { tree, member });
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
  return limitRatio(decompressed(counted(), compression), () => packed);
}

/** Errors of the kernel when a member conflicts with what exists. */
const conflictCodes = "ENOTDIR EISDIR ENOTEMPTY EEXIST ELOOP EINVAL ENAMETOOLONG".split(" ");

/** Adds how far the archive was unpacked. */
function withProgress(
  thrown: unknown,
  { target }: UnpackOptions,
  { tree, member }: { tree: UnpackedTree; member: Member | undefined },
): unknown {
  const shown = member === undefined ? target.shown : textOf(member.path);
  const error = toFileError(toArchiveError(thrown), shown);
  if (!(error instanceof BerthError)) return error;
  const { entries, bytes } = tree;
  const progress = { entries, bytes, member: member === undefined ? null : shown };
  return new BerthError(error.code, error.message, {
    ...(error.hint === undefined ? {} : { hint: error.hint }),
    facts: { ...error.facts, ...progress },
  });
}

function toArchiveError(thrown: unknown): unknown {
  if (hasCode(thrown, "EXDEV"))
    return badArchive("holds a member whose path leads out of the folder");
  if (hasCode(thrown, "ENOENT")) return badArchive("holds a hard link to a missing file");
  if (!hasCode(thrown, ...conflictCodes)) return thrown;
  return badArchive("holds a member in the place of something of another kind");
}
