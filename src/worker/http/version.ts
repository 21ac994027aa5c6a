/** Owns the version that is told: the package's. */
import manifest from "../../../package.json";

export const version: string = manifest.version;
