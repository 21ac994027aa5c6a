/** Encodes the colours and flags of a cell as one complete SGR sequence, independent of what was set before. */
import type { Attributes } from "./xterm-internals.ts";

const mode = { default: 0, palette16: 1 << 24, palette256: 2 << 24 } as const;

export const plain = "\x1b[m";

export function attributesSequence(attributes: Attributes): string {
  const parts: (number | string)[] = [
    ...colour(30, attributes.getFgColorMode(), attributes.getFgColor()),
    ...colour(40, attributes.getBgColorMode(), attributes.getBgColor()),
  ];
  if (attributes.isBold()) parts.push(1);
  if (attributes.isDim()) parts.push(2);
  if (attributes.isItalic()) parts.push(3);
  if (attributes.isUnderline()) parts.push(...underline(attributes));
  if (attributes.isBlink()) parts.push(5);
  if (attributes.isInverse()) parts.push(7);
  if (attributes.isInvisible()) parts.push(8);
  if (attributes.isStrikethrough()) parts.push(9);
  if (attributes.isOverline()) parts.push(53);
  return parts.length === 0 ? plain : `\x1b[0;${parts.join(";")}m`;
}

/** Erased cells have a background colour only. */
export function backgroundSequence(attributes: Attributes): string {
  const parts = colour(40, attributes.getBgColorMode(), attributes.getBgColor());
  return parts.length === 0 ? plain : `\x1b[0;${parts.join(";")}m`;
}

/** Whether the attributes show in a cell without a character. */
export function isVisibleWhenBlank(attributes: Attributes): boolean {
  return Boolean(
    attributes.isInverse() ||
      attributes.isUnderline() ||
      attributes.isStrikethrough() ||
      attributes.isOverline(),
  );
}

function colour(base: 30 | 40 | 50, attributes: number, value: number): number[] {
  if (attributes === mode.default) return [];
  if (attributes === mode.palette16 && base !== 50) {
    return [value < 8 ? base + value : base + 60 + (value & 7)];
  }
  if (attributes === mode.palette16 || attributes === mode.palette256) return [base + 8, 5, value];
  return [base + 8, 2, (value >>> 16) & 0xff, (value >>> 8) & 0xff, value & 0xff];
}

function underline(attributes: Attributes): (number | string)[] {
  if (!attributes.hasExtendedAttrs()) return [4];
  const { underlineStyle, underlineColor } = attributes.extended;
  const style = underlineStyle > 1 ? `4:${underlineStyle}` : 4;
  if (underlineColor === -1) return [style];
  return [style, ...colour(50, underlineColor & (3 << 24), underlineColor & 0xffffff)];
}
