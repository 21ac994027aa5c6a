import { areNoticed } from "./noticed.ts";
import { planFaults } from "./plan-faults.ts";

areNoticed("plans", planFaults, 20);
