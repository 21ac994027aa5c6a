/**
 * Writes a path of any bytes as one line of text, so that no two paths look the same: invalid UTF-8, control
 * characters and characters that change the direction of text become `\xNN`, a backslash becomes `\\`.
 */
const plainPattern = /^[\x20-\x5b\x5d-\x7e]*$/;

/** One UTF-8 character, or else one byte. */
const characterPattern = new RegExp(
  [
    "[\\xc2-\\xdf][\\x80-\\xbf]",
    "\\xe0[\\xa0-\\xbf][\\x80-\\xbf]",
    "\\xed[\\x80-\\x9f][\\x80-\\xbf]",
    "[\\xe1-\\xec\\xee\\xef][\\x80-\\xbf]{2}",
    "\\xf0[\\x90-\\xbf][\\x80-\\xbf]{2}",
    "[\\xf1-\\xf3][\\x80-\\xbf]{3}",
    "\\xf4[\\x80-\\x8f][\\x80-\\xbf]{2}",
    "[^]",
  ].join("|"),
  "g",
);
const invisiblePattern = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u;

/** `raw` has one character (U+0000 to U+00FF) for each byte. */
export function escapePath(raw: string): string {
  return plainPattern.test(raw) ? raw : raw.replace(characterPattern, escapeCharacter);
}

function escapeCharacter(raw: string): string {
  if (raw === "\\") return "\\\\";
  const isText = raw.length > 1 || raw < "\x80";
  const bytes = Array.from(raw, (byte) => byte.charCodeAt(0).toString(16).padStart(2, "0"));
  const text = isText ? decodeURIComponent(bytes.map((byte) => `%${byte}`).join("")) : raw;
  return isText && !invisiblePattern.test(text) ? text : bytes.map((byte) => `\\x${byte}`).join("");
}
