/**
 * Owns what is read of the terminal emulator beyond its public interface, which tells neither margins nor charsets
 * nor whether it stands within a sequence. Does not own what is made of it. Pinned by the version of the package.
 */
import type { IBufferCell, Terminal } from "@xterm/headless";

/** Colours and flags, of a cell or of the cursor. */
export type Attributes = Pick<
  IBufferCell,
  | "getFgColor"
  | "getFgColorMode"
  | "getBgColor"
  | "getBgColorMode"
  | "isBold"
  | "isDim"
  | "isItalic"
  | "isUnderline"
  | "isBlink"
  | "isInverse"
  | "isInvisible"
  | "isStrikethrough"
  | "isOverline"
> & {
  fg: number;
  bg: number;
  extended: { underlineStyle: number; underlineColor: number };
  hasExtendedAttrs(): number;
};

export type Cell = IBufferCell & Attributes;

type Charset = Record<string, string | undefined>;

export type InsideBuffer = {
  x: number;
  y: number;
  ybase: number;
  scrollTop: number;
  scrollBottom: number;
  savedX: number;
  savedY: number;
  savedCurAttrData: Attributes;
  savedCharset: Charset | undefined;
  tabs: Record<number, boolean | undefined>;
};

export type Inside = {
  buffers: { normal: InsideBuffer; alt: InsideBuffer; active: InsideBuffer };
  coreService: {
    isCursorHidden: boolean;
    decPrivateModes: { cursorStyle?: "block" | "underline" | "bar"; cursorBlink?: boolean };
  };
  coreMouseService: { activeEncoding: string };
  optionsService: { rawOptions: { convertEol: boolean } };
  _charsetService: {
    charset: Charset | undefined;
    glevel: number;
    _charsets: (Charset | undefined)[];
  };
  _inputHandler: {
    _curAttrData: Attributes;
    _parser: { currentState: number; precedingJoinState: number };
    eraseInDisplay(params: { params: number[] }, isSelective: boolean): boolean;
    eraseInLine(params: { params: number[] }, isSelective: boolean): boolean;
  };
};

export function insideOf(terminal: Terminal): Inside {
  return (terminal as unknown as { _core: Inside })._core;
}

/** The parser's state between sequences. */
const ground = 0;

export function isWithinSequence(terminal: Terminal): boolean {
  return insideOf(terminal)._inputHandler._parser.currentState !== ground;
}

/** Line drawing and the British pound are what programs still choose; the others have no use beside UTF-8. */
export function charsetCode(charset: Charset | undefined): "0" | "A" | "B" {
  if (charset?.q === "─") return "0";
  return charset?.["#"] === "£" ? "A" : "B";
}
