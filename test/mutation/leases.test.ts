import { faults as leaseFaults } from "./faults.ts";
import { keyFaults } from "./key-faults.ts";
import { areNoticed } from "./noticed.ts";

areNoticed("leases, metadata and keyed calls", [...leaseFaults, ...keyFaults], 20);
