import { memberFaults } from "./member-faults.ts";
import { areNoticed } from "./noticed.ts";

areNoticed("members of plans", memberFaults, 10);
