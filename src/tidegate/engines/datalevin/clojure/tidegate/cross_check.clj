(ns tidegate.cross-check
  "Answers a query from the facts themselves, where the planner of Datalevin found nothing.

  Clause by clause it looks for values that all clauses hold for, in the facts of the attributes that
  the query names; the planner and the indexes have no part in it. It is bounded by the number of
  facts and of steps, and what it does not know it leaves alone: other sources than `$`, rules,
  functions that take the database, attributes that are variables, pulls."
  (:require
   [datalevin.built-ins :as built-ins]
   [datalevin.core :as d]
   [datalevin.interface :as i])
  (:import
   [java.util LinkedHashMap]))

(def ^:private most-facts 10000)
(def ^:private most-steps 100000)
(def ^:private most-answers 10000)
(def ^:private most-remembered 512)

(defn- leave [] (throw (ex-info "" {::left true})))

(defn- variable? [x] (and (symbol? x) (= \? (first (name x)))))
(defn- blank? [x] (= '_ x))
(defn- plain? [x] (or (number? x) (string? x) (keyword? x) (boolean? x) (inst? x) (uuid? x)))

;; The clauses, as maps of their kind; what is not known leaves.

(declare known-clauses)

(defn- known-pattern [clause]
  (let [[e a x & more] (if (= '$ (first clause)) (rest clause) clause)
        x (if (nil? x) '_ x)]
    (when-not (and (nil? more) (keyword? a)
                   (or (variable? e) (blank? e) (integer? e))
                   (or (variable? x) (blank? x) (plain? x)))
      (leave))
    {:kind :pattern :e e :a a :v x}))

(defn- known-call [[[f & args] binding & more]]
  (let [f* (get built-ins/query-fns f)]
    (when-not (and f* (nil? more) (or (nil? binding) (variable? binding))
                   (every? #(or (variable? %) (plain? %)) args))
      (leave))
    {:kind :call :f f* :args args :binding binding}))

(defn- known-clause [clause]
  (let [head (when (seq? clause) (first clause))]
    (cond
      (and (vector? clause) (seq? (first clause))) (known-call clause)
      (vector? clause) (known-pattern clause)
      (= 'and head) {:kind :and :clauses (known-clauses (rest clause))}
      (= 'not head) {:kind :not :clauses (known-clauses (rest clause))}
      (= 'or head) {:kind :or :branches (mapv #(known-clauses [%]) (rest clause))}
      :else (leave))))

(defn- known-clauses [clauses] (mapv known-clause clauses))

(defn- all-patterns [clauses]
  (mapcat (fn [{:keys [kind clauses branches] :as clause}]
            (case kind
              :pattern [clause]
              :call []
              (:and :not) (all-patterns clauses)
              :or (mapcat all-patterns branches)))
          clauses))

(defn- variables [{:keys [kind e v args binding clauses branches]}]
  (filter variable?
          (case kind
            :pattern [e v]
            :call (cons binding args)
            (:and :not) (mapcat variables clauses)
            :or (mapcat #(mapcat variables %) branches))))

;; The facts.

(defn- count-of [db a]
  (try (d/count-datoms db nil a nil) (catch clojure.lang.ExceptionInfo _ (leave))))

(defn- facts-of [db attributes]
  (when (> (transduce (map #(long (count-of db %))) + attributes) most-facts) (leave))
  (into {}
        (map (fn [a]
               (let [pairs (mapv (fn [x] [(:e x) (:v x)]) (d/datoms db :ave a))]
                 [a {:all pairs :by-e (group-by first pairs) :by-v (group-by second pairs)}])))
        attributes))

(defn- missing?
  "Whether a pattern by itself has no fact: then the empty answer is right, and nothing is loaded. A
  decimal is not looked up, since the index takes 2.5 and 2.50 for two."
  [db env {:keys [e a v]}]
  (let [e (get env e e) v (get env v v)]
    (and (plain? v) (not (decimal? v))
         (empty? (d/search-datoms db (when (integer? e) e) a v)))))

;; The search: depth first, without recursion over facts of one pattern.

(defn- bound? [env x] (or (not (symbol? x)) (contains? env x)))

(defn- value-of [env x] (if (symbol? x) (get env x) x))

(defn- candidates [facts env {:keys [e a v]}]
  (let [{:keys [all by-e by-v]} (get facts a)]
    (cond
      (and (not (blank? e)) (bound? env e)) (get by-e (value-of env e))
      (and (not (blank? v)) (bound? env v)) (get by-v (value-of env v))
      :else all)))

(defn- unified [env x value]
  (cond
    (blank? x) env
    (bound? env x) (when (= value (value-of env x)) env)
    :else (assoc env x value)))

(defn- cost
  "How soon a clause is tried: calls as soon as they can be, `not` when what it shares is known."
  [facts env outside {:keys [kind args clauses] :as clause}]
  (case kind
    :call (if (every? #(bound? env %) args) 0 Long/MAX_VALUE)
    :pattern (inc (count (candidates facts env clause)))
    :and 1
    :or (if (some #(contains? env %) (variables clause)) most-facts (inc most-facts))
    :not (if (every? #(or (bound? env %) (not (outside %))) (mapcat variables clauses))
           0
           Long/MAX_VALUE)))

(defn- step! [steps] (when (> (long (vswap! steps inc)) most-steps) (leave)))

(declare solutions)

(defn- solved
  "The environments in which one clause holds, on from `env`."
  [facts steps env outside {:keys [kind e v f args binding clauses branches] :as clause}]
  (case kind
    :pattern (keep (fn [[found-e found-v]]
                     (step! steps)
                     (some-> (unified env e found-e) (unified v found-v)))
                   (candidates facts env clause))
    :call (do (step! steps)
              (let [said (apply f (map #(value-of env %) args))]
                (if binding
                  (when-not (nil? said) (some-> (unified env binding said) list))
                  (when said (list env)))))
    :and (solutions facts steps env outside clauses)
    :or (mapcat #(solutions facts steps env outside %) branches)
    :not (when (empty? (solutions facts steps env outside clauses)) (list env))))

(defn- solutions [facts steps env outside clauses]
  (if (empty? clauses)
    (list env)
    (let [costs (mapv #(cost facts env outside %) clauses)
          at (apply min-key costs (range (count clauses)))
          left (into (subvec clauses 0 at) (subvec clauses (inc (long at))))]
      (when (= Long/MAX_VALUE (costs at)) (leave))
      (mapcat #(solutions facts steps % outside left)
              (solved facts steps env outside (clauses at))))))

;; What is asked of the solutions: by the engine itself, over a relation.

(defn- known-input [name x]
  (cond
    (= '$ name) nil
    (and (variable? name) (plain? x)) [name x]
    :else (leave)))

(defn- known-find [element]
  (when (and (seq? element)
             (or (#{'pull 'aggregate} (first element)) (not-every? #(not= '$ %) element)))
    (leave))
  (when (vector? element) (run! known-find element)))

(defn- asked [given names rows]
  (d/q (-> given (dissoc :in :where) (assoc :in [[names]])) rows))

(defn- computed [db schema {:keys [find in where] :as given} inputs]
  (run! known-find find)
  (let [clauses (known-clauses where)
        env (into {} (map known-input (rest in) inputs))
        patterns (all-patterns clauses)
        attributes (distinct (map :a patterns))]
    (when (or (empty? patterns)
              ;; The order of UUIDs is another one in Java than in the index.
              (some #(= :db.type/uuid (get-in schema [% :db/valueType])) attributes))
      (leave))
    (when-not (some #(missing? db env %) (filter #(= :pattern (:kind %)) clauses))
      (let [facts (facts-of db attributes)
            ;; Variables that a positive clause has; those that only a `not` has are its own.
            outside (into (set (keys env))
                          (mapcat variables)
                          (remove #(= :not (:kind %)) clauses))
            found (take (inc (long most-answers))
                        (solutions facts (volatile! 0) env outside clauses))
            names (vec (sort outside))]
        (when (seq found)
          (when (> (count found) (long most-answers)) (leave))
          (asked given names (mapv (fn [env] (mapv env names)) found)))))))

;; Queries whose empty answer was right at the last transaction.

(def ^:private remembered
  (proxy [LinkedHashMap] [16 0.75 true]
    (removeEldestEntry [_] (> (.size ^LinkedHashMap this) (long most-remembered)))))

(defn answer
  "What the facts answer to a query for which the planner found nothing, in a list; nil if that is
  right, or is not known."
  [db schema given inputs]
  ;; By its hash, since inputs may be long: two of one hash only lack the comparison.
  (let [key (hash [(i/dir (:store db)) given (vec inputs)])
        at (:max-tx db)]
    (when-not (= at (locking remembered (.get ^LinkedHashMap remembered key)))
      (let [found (try
                    (computed db schema given inputs)
                    (catch Exception _ nil)
                    (catch StackOverflowError _ nil))]
        (if (or (nil? found) (and (coll? found) (empty? found)))
          (do (locking remembered (.put ^LinkedHashMap remembered key at)) nil)
          (list found))))))
