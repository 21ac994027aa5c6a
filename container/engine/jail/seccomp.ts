/** Assembles the list of refused calls into the system call filter that the agent and all commands inherit. */
import { setSystemCallFilter } from "./kernel.ts";
import { errorNumbers, type Refusal, refusals } from "./refused-calls.ts";

type Architecture = "x64" | "arm64";
type Width = "bits64" | "bits32";

/** What the kernel calls them: AUDIT_ARCH_X86_64 and _I386, AUDIT_ARCH_AARCH64 and _ARM. */
const auditNumbers: Record<Architecture, Record<Width, number>> = {
  x64: { bits64: 0xc000003e, bits32: 0x40000003 },
  arm64: { bits64: 0xc00000b7, bits32: 0x40000028 },
};

/** x86-64 with 32-bit pointers: the same calls under other numbers. */
const x32Bit = 0x40000000;

const allow = 0x7fff0000;
const refuseWith = (error: keyof typeof errorNumbers) => 0x00050000 | errorNumbers[error];

export function filterSystemCalls(): void {
  const { arch } = process;
  if (arch !== "x64" && arch !== "arm64")
    throw new Error(`There is no system call table for ${arch}.`);
  setSystemCallFilter(assemble(arch));
}

// struct seccomp_data: number at 0, architecture at 4, arguments of 8 bytes from 16 on (little endian).
const [numberOffset, archOffset, firstArgOffset] = [0, 4, 16];

type Step = { code: number; jumpTrue: number; jumpFalse: number; value: number };

function assemble(architecture: Architecture): Uint8Array {
  const widths = Object.entries(auditNumbers[architecture]) as [Width, number][];
  const steps = [
    ...widths.flatMap(([width, audit]) =>
      ifAll([{ offset: archOffset, is: "oneOf", values: [audit] }], filterOf(architecture, width)),
    ),
    returnVerdict(refuseWith("ENOSYS")),
  ];
  const bytes = new Uint8Array(steps.length * 8);
  const view = new DataView(bytes.buffer);
  steps.forEach(({ code, jumpTrue, jumpFalse, value }, index) => {
    if (Math.max(jumpTrue, jumpFalse) > jumpMax) throw new Error("the filter jumps too far");
    view.setUint16(index * 8, code, true);
    view.setUint8(index * 8 + 2, jumpTrue);
    view.setUint8(index * 8 + 3, jumpFalse);
    view.setUint32(index * 8 + 4, value, true);
  });
  return bytes;
}

const jumpMax = 255;

function filterOf(architecture: Architecture, width: Width): Step[] {
  const isX32: Test = { offset: numberOffset, is: "withBits", values: [x32Bit] };
  return [
    ...(architecture === "x64" ? ifAll([isX32], [returnVerdict(refuseWith("ENOSYS"))]) : []),
    ...refusals
      .filter((refusal) => refusal[architecture][width].length > 0)
      .flatMap((refusal) => refuse(refusal, refusal[architecture][width])),
    returnVerdict(allow),
  ];
}

function refuse({ error, when = [] }: Refusal, numbers: readonly number[]): Step[] {
  const tests = when.map(({ argument, is, values }): Test => {
    return { offset: firstArgOffset + argument * 8, is, values };
  });
  const isCall: Test = { offset: numberOffset, is: "oneOf", values: numbers };
  return ifAll([isCall, ...tests], [returnVerdict(refuseWith(error))]);
}

type Test = { offset: number; is: "withBits" | "oneOf" | "noneOf"; values: readonly number[] };

/** Runs `then` if every test holds, and continues behind it otherwise. */
function ifAll(tests: readonly Test[], then: Step[]): Step[] {
  const steps = [...then];
  for (const test of tests.toReversed()) steps.unshift(...testSteps(test, steps.length));
  return steps;
}

/** Continues with the next step if the test holds, else jumps over as many as `skip`. */
function testSteps({ offset, is, values }: Test, skip: number): Step[] {
  const code = is === "withBits" ? jumpIfBits : jumpIfEqual;
  const jumps = values.map((value, index): Step => {
    const behindJumps = values.length - 1 - index;
    const [whenFound, whenNone] = is === "noneOf" ? [skip, 0] : [0, skip];
    const isLast = behindJumps === 0;
    return {
      ...{ code, value },
      ...{ jumpTrue: behindJumps + whenFound, jumpFalse: isLast ? whenNone : 0 },
    };
  });
  return [load(offset), ...jumps];
}

const [jumpIfEqual, jumpIfBits] = [0x15, 0x45];

function step(code: number, value: number): Step {
  return { code, jumpTrue: 0, jumpFalse: 0, value };
}

const load = (offset: number) => step(0x20, offset);
const returnVerdict = (value: number) => step(0x06, value);
