import { createContext, use } from "react";

import type { Role } from "../api/types";
import { hasRole } from "./session";

interface RegistryAccess {
  registry: string;
  role: Role;
}

/** The registry in the URL and the user's role in it. */
export const RegistryContext = createContext<RegistryAccess>({ registry: "", role: "viewer" });

export const useRegistry = () => use(RegistryContext).registry;

export const useHasRole = (needed: Role) => hasRole(use(RegistryContext).role, needed);

/** Builds paths of pages in the current registry. */
export function useRegistryLink() {
  const registry = useRegistry();
  return (...parts: string[]) =>
    `/r/${encodeURIComponent(registry)}/${parts.map(encodeURIComponent).join("/")}`;
}
