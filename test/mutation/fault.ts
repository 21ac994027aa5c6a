/** A deliberate fault: replaces one piece of text that occurs exactly once in its file. */
export type Fault = {
  name: string;
  file: string;
  find: string;
  put: string;
  /** The rules of which a test must fail. */
  by: readonly string[];
};

export function faultsByFile(files: Record<string, Omit<Fault, "file">[]>): readonly Fault[] {
  return Object.entries(files).flatMap(([file, faults]) =>
    faults.map(({ name, ...fault }) => ({ name, file, ...fault })),
  );
}
