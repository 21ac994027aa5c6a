/** Reads internals of the pinned version of the emulator: margins, charsets, parser state. */
import type { IBufferCell, Terminal } from "@xterm/headless";

/** Colours and flags of a cell or of the cursor. */
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

export type BufferInternals = {
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

export type XtermInternals = {
  buffers: { normal: BufferInternals; alt: BufferInternals; active: BufferInternals };
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

export function internalsOf(terminal: Terminal): XtermInternals {
  return (terminal as unknown as { _core: XtermInternals })._core;
}

/** The parser's state between sequences. */
const ground = 0;

export function isWithinSequence(terminal: Terminal): boolean {
  return internalsOf(terminal)._inputHandler._parser.currentState !== ground;
}

/** Programs still use line drawing and the British pound; UTF-8 has replaced the other character sets. */
export function charsetCode(charset: Charset | undefined): "0" | "A" | "B" {
  if (charset?.q === "─") return "0";
  return charset?.["#"] === "£" ? "A" : "B";
}
