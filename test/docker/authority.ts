/**
 * A certificate authority for the network companion, with one certificate per host. Its files are removed with its
 * container.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createSecureContext, type SecureContext } from "node:tls";

const days = "2";
const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

export class Authority {
  readonly certificate: string;
  readonly #folder: string;
  readonly #contexts = new Map<string, SecureContext>();

  constructor(parent: string) {
    this.#folder = mkdtempSync(join(parent, "authority-"));
    const names = ["-subj", "/CN=Companion", "-keyout", "ca.key", "-out", "ca.crt"];
    this.#openssl(["req", "-x509", ...newKey, "-days", days, ...names]);
    this.certificate = this.#read("ca.crt");
  }

  contextFor(host: string): SecureContext {
    const known = this.#contexts.get(host);
    if (known !== undefined) return known;
    writeFileSync(join(this.#folder, "host.ext"), `subjectAltName=DNS:${host}\n`);
    const request = ["-subj", "/CN=host", "-keyout", "host.key", "-out", "host.csr"];
    this.#openssl(["req", ...newKey, ...request]);
    const signed = ["-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-out", "host.crt"];
    const extensions = ["-in", "host.csr", "-extfile", "host.ext", "-days", days];
    this.#openssl(["x509", "-req", ...extensions, ...signed]);
    const context = createSecureContext({
      key: this.#read("host.key"),
      cert: this.#read("host.crt") + this.certificate,
    });
    this.#contexts.set(host, context);
    return context;
  }

  #read(name: string): string {
    return readFileSync(join(this.#folder, name), "utf8");
  }

  #openssl(args: string[]): void {
    execFileSync("openssl", args, { cwd: this.#folder, stdio: "ignore", timeout: 10_000 });
  }
}
