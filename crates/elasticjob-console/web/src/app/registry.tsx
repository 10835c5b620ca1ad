import { createContext, use } from "react";

import type { Role } from "../api/types";
import { hasRole } from "./session";

interface RegistryAccess {
  registry: string;
  role: Role;
}

/** The registry of the URL, and what one may do there. */
export const RegistryContext = createContext<RegistryAccess>({ registry: "", role: "viewer" });

export const useRegistry = () => use(RegistryContext).registry;

export const useHasRole = (needed: Role) => hasRole(use(RegistryContext).role, needed);

/** A page of the registry we are at. */
export function useRegistryLink() {
  const registry = useRegistry();
  return (...parts: string[]) =>
    `/r/${encodeURIComponent(registry)}/${parts.map(encodeURIComponent).join("/")}`;
}
