/**
 * Owns how colours and flags are said to a terminal (SGR), whole each time: nothing depends on what was set before.
 * Does not own where they are needed (picture.ts).
 */
import type { Attributes } from "./xterm-internals.ts";

const mode = { default: 0, palette16: 1 << 24, palette256: 2 << 24 } as const;

export const plain = "\x1b[m";

export function attributesSequence(of: Attributes): string {
  const parts: (number | string)[] = [
    ...colour(30, of.getFgColorMode(), of.getFgColor()),
    ...colour(40, of.getBgColorMode(), of.getBgColor()),
  ];
  if (of.isBold()) parts.push(1);
  if (of.isDim()) parts.push(2);
  if (of.isItalic()) parts.push(3);
  if (of.isUnderline()) parts.push(...underline(of));
  if (of.isBlink()) parts.push(5);
  if (of.isInverse()) parts.push(7);
  if (of.isInvisible()) parts.push(8);
  if (of.isStrikethrough()) parts.push(9);
  if (of.isOverline()) parts.push(53);
  return parts.length === 0 ? plain : `\x1b[0;${parts.join(";")}m`;
}

/** What erasing leaves: a colour behind nothing. */
export function backgroundSequence(of: Attributes): string {
  const parts = colour(40, of.getBgColorMode(), of.getBgColor());
  return parts.length === 0 ? plain : `\x1b[0;${parts.join(";")}m`;
}

/** Whether it would be seen also where there is no character. */
export function isSeenAlone(of: Attributes): boolean {
  return Boolean(of.isInverse() || of.isUnderline() || of.isStrikethrough() || of.isOverline());
}

function colour(base: 30 | 40 | 50, of: number, value: number): number[] {
  if (of === mode.default) return [];
  if (of === mode.palette16 && base !== 50) {
    return [value < 8 ? base + value : base + 60 + (value & 7)];
  }
  if (of === mode.palette16 || of === mode.palette256) return [base + 8, 5, value];
  return [base + 8, 2, (value >>> 16) & 0xff, (value >>> 8) & 0xff, value & 0xff];
}

function underline(of: Attributes): (number | string)[] {
  if (!of.hasExtendedAttrs()) return [4];
  const { underlineStyle, underlineColor } = of.extended;
  const style = underlineStyle > 1 ? `4:${underlineStyle}` : 4;
  if (underlineColor === -1) return [style];
  return [style, ...colour(50, underlineColor & (3 << 24), underlineColor & 0xffffff)];
}
