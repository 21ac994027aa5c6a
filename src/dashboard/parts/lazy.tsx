/** A component whose code is loaded when it is first drawn. */
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ErrorNote } from "./error-note.tsx";

export function lazy<Props extends object>(
  load: () => Promise<ComponentType<Props>>,
): ComponentType<Props> {
  let loaded: ComponentType<Props> | undefined;
  return function Lazy(props: Props) {
    const [, setIsLoaded] = useState(false);
    const [error, setError] = useState<unknown>();
    useEffect(() => {
      if (loaded !== undefined) return;
      load().then((component) => {
        loaded = component;
        setIsLoaded(true);
      }, setError);
    }, []);
    if (error !== undefined) return <ErrorNote error={error} what="Loading the page" />;
    const Loaded = loaded;
    return Loaded === undefined ? <p class="quiet">Loading …</p> : <Loaded {...props} />;
  };
}
