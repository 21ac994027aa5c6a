import { callFaults } from "./call-faults.ts";
import { areNoticed } from "./noticed.ts";

areNoticed("the Directory, keys, handles, tenants, logs and repeats", callFaults, 8, {
  wide: true,
});
