/**
 * The system call filter that commands inherit: refuses calls that open more of the kernel than a command needs.
 *
 * Calls that need a capability are refused without a filter (see privileges.ts). Without user namespaces a command
 * cannot gain any capability, not even over a namespace of its own.
 */
import { setSystemCallFilter } from "./kernel.ts";

type SystemCallTable = {
  audit: number;
  clone: number;
  unshare: number;
  /** Refused with EPERM: keyrings, bpf, perf_event_open, userfaultfd. */
  refused: number[];
};

/** The second row of each is the 32-bit architecture that the same kernel also runs. */
const architectures: Record<string, SystemCallTable[]> = {
  x64: [
    { audit: 0xc000003e, clone: 56, unshare: 272, refused: [248, 249, 250, 321, 298, 323] },
    { audit: 0x40000003, clone: 120, unshare: 310, refused: [286, 287, 288, 357, 336, 374] },
  ],
  arm64: [
    { audit: 0xc00000b7, clone: 220, unshare: 97, refused: [217, 218, 219, 280, 241, 282] },
    { audit: 0x40000028, clone: 120, unshare: 337, refused: [309, 310, 311, 386, 364, 388] },
  ],
};

/** clone3 and io_uring have the same numbers everywhere. Programs take ENOSYS as a sign of an older kernel. */
const absent = { clone3: 435, ioUring: [425, 426, 427] };
/** x86-64 with 32-bit pointers: the same calls under other numbers. */
const x32Bit = 0x40000000;
const newUser = 0x10000000;

const verdict = { allow: 0x7fff0000, eperm: 0x00050001, enosys: 0x00050026 } as const;

export function filterSystemCalls(): void {
  const tables = architectures[process.arch];
  if (tables === undefined) throw new Error(`There is no system call table for ${process.arch}.`);
  setSystemCallFilter(assemble(tables));
}

// struct seccomp_data: number at 0, architecture at 4, first argument at 16 (little endian).
const [numberOffset, archOffset, firstArgOffset] = [0, 4, 16];

type Step = { code: number; jumpTrue: number; jumpFalse: number; value: number };

function assemble(tables: SystemCallTable[]): Uint8Array {
  const steps: Step[] = [];
  for (const table of tables) {
    const body = filterOf(table);
    // A jump reaches 255 instructions, which is more than the largest table has.
    steps.push(load(archOffset), { ...jumpEqual(table.audit), jumpFalse: body.length }, ...body);
  }
  steps.push(returnVerdict(verdict.enosys));
  const bytes = new Uint8Array(steps.length * 8);
  const view = new DataView(bytes.buffer);
  steps.forEach(({ code, jumpTrue, jumpFalse, value }, index) => {
    view.setUint16(index * 8, code, true);
    view.setUint8(index * 8 + 2, jumpTrue);
    view.setUint8(index * 8 + 3, jumpFalse);
    view.setUint32(index * 8 + 4, value, true);
  });
  return bytes;
}

function filterOf(table: SystemCallTable): Step[] {
  const withUser = [
    load(firstArgOffset),
    testBits(newUser),
    returnVerdict(verdict.eperm),
    returnVerdict(verdict.allow),
  ];
  return [
    load(numberOffset),
    ...inCase(jumpBits(x32Bit), [returnVerdict(verdict.enosys)]),
    ...[absent.clone3, ...absent.ioUring].flatMap((it) =>
      inCase(jumpEqual(it), [returnVerdict(verdict.enosys)]),
    ),
    ...table.refused.flatMap((it) => inCase(jumpEqual(it), [returnVerdict(verdict.eperm)])),
    ...[table.clone, table.unshare].flatMap((it) => inCase(jumpEqual(it), withUser)),
    returnVerdict(verdict.allow),
  ];
}

function inCase(condition: Step, then: Step[]): Step[] {
  return [{ ...condition, jumpTrue: 0, jumpFalse: then.length }, ...then];
}

function step(code: number, value: number): Step {
  return { code, jumpTrue: 0, jumpFalse: 0, value };
}

const load = (offset: number) => step(0x20, offset);
const returnVerdict = (value: number) => step(0x06, value);
const jumpEqual = (value: number) => step(0x15, value);
const jumpBits = (value: number) => step(0x45, value);

/** Continues with the next instruction if one of the bits is set, else with the one after it. */
function testBits(value: number): Step {
  return { ...jumpBits(value), jumpFalse: 1 };
}
