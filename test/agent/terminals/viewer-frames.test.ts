import fc from "fast-check";
import { expect, test } from "vitest";
import { readFrame } from "../../../container/agent/terminals/frames.ts";

const anything = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.integer(),
  fc.double(),
  fc.constantFrom(null, true, [], {}),
);

test("[T15] a frame of a viewer is read entirely, or refused by the field that is wrong", () => {
  expect(readFrame('{"type":"ack","offset":7}')).toEqual({ type: "ack", offset: 7 });
  const resize = { type: "resize", cols: 1000, rows: 1 };
  expect(readFrame(JSON.stringify(resize))).toEqual(resize);
  fc.assert(
    fc.property(anything, fc.constantFrom("type", "cols", "rows", "other"), (value, field) => {
      const frame = { ...resize, [field]: value };
      const fits = field !== "other" && JSON.stringify(frame) === JSON.stringify(resize);
      const isSize = field === "cols" || field === "rows";
      const isRight =
        isSize && Number.isInteger(value) && Number(value) >= 1 && Number(value) <= 1000;
      if (fits || isRight)
        expect(readFrame(JSON.stringify(frame))).toMatchObject({ [field]: value });
      else expect(() => readFrame(JSON.stringify(frame))).toThrow(field);
    }),
  );
});
