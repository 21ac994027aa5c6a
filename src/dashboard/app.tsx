/** The frame of all pages: the name, the navigation, who is signed in. */

import { useEffect } from "preact/hooks";
import { type Session, signOut } from "./api.ts";
import { FleetPage } from "./pages/fleet-page.tsx";
import { Action } from "./parts/action.tsx";
import { forgetAdministrator } from "./parts/administrator.tsx";
import { lazy } from "./parts/lazy.tsx";
import { addressOf, useAddress } from "./parts/router.ts";
import { SessionContext } from "./parts/session.ts";

const SandboxPage = lazy(async () => (await import("./pages/sandbox-page.tsx")).SandboxPage);
const PlansPage = lazy(async () => (await import("./pages/plans-page.tsx")).PlansPage);
const PlanPage = lazy(async () => (await import("./pages/plan-page.tsx")).PlanPage);
const ImagesPage = lazy(async () => (await import("./pages/images-page.tsx")).ImagesPage);
const KeysPage = lazy(async () => (await import("./pages/keys-page.tsx")).KeysPage);
const MachinePage = lazy(async () => (await import("./pages/machine-page.tsx")).MachinePage);

const places = [
  ["sandboxes", "Sandboxes"],
  ["plans", "Plans"],
  ["images", "Images"],
  ["keys", "Keys"],
  ["machine", "Machine"],
] as const;

export function App({ session, onSignedOut }: { session: Session; onSignedOut: () => void }) {
  const { parts, query } = useAddress();
  const [place = "sandboxes", id, tab] = parts;
  useEffect(() => {
    document.title = [id, place, "Berth"].filter((part) => part !== undefined).join(" · ");
  }, [place, id]);
  const leave = async () => {
    forgetAdministrator();
    await signOut();
    onSignedOut();
  };
  return (
    <SessionContext.Provider value={session}>
      <header class="top">
        <a class="brand" href="#/">
          <img src="assets/icon.svg" alt="" width="24" height="24" />
          Berth
        </a>
        <nav aria-label="Pages">
          {places.map(([name, title]) => (
            <a
              key={name}
              href={addressOf([name])}
              aria-current={name === place ? "page" : undefined}
            >
              {title}
            </a>
          ))}
        </nav>
        <span class="quiet">
          {session.name} · {session.tenant}
          {isReadOnly(session) ? " · read only" : ""}
        </span>
        <Action run={leave} class="small">
          Sign out
        </Action>
      </header>
      <main>{draw(place, id, tab, query)}</main>
    </SessionContext.Provider>
  );
}

function draw(
  place: string,
  id: string | undefined,
  tab: string | undefined,
  query: URLSearchParams,
) {
  if (place === "sandboxes" && id !== undefined)
    return <SandboxPage id={id} tab={tab ?? "overview"} key={id} />;
  if (place === "sandboxes") return <FleetPage query={query} />;
  if (place === "plans" && id !== undefined) return <PlanPage name={id} key={id} />;
  if (place === "plans") return <PlansPage />;
  if (place === "images") return <ImagesPage />;
  if (place === "keys") return <KeysPage />;
  if (place === "machine") return <MachinePage />;
  return (
    <p class="card empty">
      There is no page here. <a href="#/">All sandboxes</a>
    </p>
  );
}

const isReadOnly = ({ rights }: Session) => rights.every((right) => right === "read");
