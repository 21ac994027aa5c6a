/** Exports all schemas that rows of the table of verbs refer to. */

export * from "../checkpoint.ts";
export * from "../directory.ts";
export * from "../event.ts";
export * from "../exec.ts";
export * from "../file.ts";
export * from "../health.ts";
export * from "../image.ts";
export * from "../key.ts";
export * from "../lease.ts";
export * from "../metadata.ts";
export * from "../metrics.ts";
export * from "../plan.ts";
export * from "../port.ts";
export * from "../process.ts";
export * from "../rights.ts";
export * from "../sandbox.ts";
export * from "../service.ts";
export * from "../session.ts";
export * from "../settings.ts";
export * from "../sign-in.ts";
export * from "../template.ts";
export * from "../terminal.ts";
