(ns tidegate.query
  "Asks queries, past what the planner of Datalevin 1.2.8 is known to get wrong.

  * A variable that a pattern has twice, as in `[?e :boss ?e]`, is not compared with itself: each
    entity with a boss is found. It is written here as two, and a clause that compares them.
  * A pattern whose value is not used, as in `[?g :age _]`, is left out where `?g` is found by what
    it refers to: entities without an age are found. So no variable is taken for unused, and a blank
    value is given a name.
  * An entity that has one value by two attributes, as in `[?e :boss ?f] [?e :friend ?f]`, is an error
    in some plans. The second value gets a name of its own.
  * A whole number that is written as the value of a `bigint` or `bigdec` attribute fails by its class.

  A server plans by itself, so of these only what a text can say helps for a remote database."
  (:require
   [clojure.edn :as edn]
   [datalevin.core :as d]
   [datalevin.query.execute]
   [tidegate.cross-check :as cross-check]))

(defn keep-unused-variables!
  "Have the planner take each variable for used, in every thread."
  []
  (alter-var-root #'datalevin.query.execute/rewrite-unused-vars (constantly identity)))

(defn parts
  "A query as a map of its sections, however it is written."
  [query]
  (if (map? query)
    query
    (loop [found {} left (seq query) at nil]
      (cond
        (nil? left) found
        (keyword? (first left)) (recur (assoc found (first left) []) (next left) (first left))
        :else (recur (update found at conj (first left)) (next left) at)))))

(defn- variable? [x] (and (symbol? x) (= \? (first (name x)))))

(defn- pattern?
  "Whether a clause is a data pattern; one of another source than `$` is left as it is."
  [clause]
  (and (vector? clause)
       (not (sequential? (first clause)))
       (or (= '$ (first clause))
           (not (and (symbol? (first clause)) (= \$ (first (name (first clause)))))))))

(defn as-typed
  "A number that is written for an attribute of another class of numbers, as that class."
  [schema attribute x]
  (case (when (keyword? attribute) (get-in schema [attribute :db/valueType]))
    :db.type/bigint (if (integer? x) (biginteger x) x)
    :db.type/bigdec (if (integer? x) (bigdec x) x)
    x))

(defn- pattern-parts [clause]
  (if (= '$ (first clause)) [['$] (rest clause)] [[] clause]))

(defn- named [{:keys [fresh schema]} clause fill?]
  (let [[source [e a x & more :as given]] (pattern-parts clause)
        blank? (or (= 2 (count given)) (and (= 3 (count given)) (= '_ x)))]
    (cond
      (and fill? blank? (keyword? a)) (conj (vec source) e a (fresh))
      (> (count given) 2) (into (vec source) (list* e a (as-typed schema a x) more))
      :else clause)))

(defn- compared
  "A pattern in which each variable stands once, and the clauses that compare."
  [{:keys [fresh]} clause]
  (loop [seen #{} out [] equal [] left (seq clause)]
    (if-let [[x & more] left]
      (if (and (variable? x) (seen x))
        (let [other (fresh)]
          (recur seen (conj out other) (conj equal [(list '= x other)]) more))
        (recur (conj seen x) (conj out x) equal more))
      (into [out] equal))))

(declare rewritten)

(defn- branch
  "A branch of an `or` as one clause. Its variables are given, so no blank gets a name there."
  [context clause]
  (let [clauses (rewritten context [clause] false)]
    (if (= 1 (count clauses)) (first clauses) (apply list 'and clauses))))

(defn- alternatives
  "An `or`, of which all branches have the same variables: if one has another now, they are named."
  [context [head & branches]]
  (let [now (map #(branch context %) branches)
        variables (distinct (filter variable? (flatten (first branches))))]
    (if (= now branches) (list* head now) (list* 'or-join (vec variables) now))))

(defn- typed-call
  "A call that compares a variable of a `bigint` or `bigdec` attribute with whole numbers."
  [{:keys [types schema]} [[f & args :as call] & more :as clause]]
  (if-let [attribute (and (#{'< '> '<= '>= '= '== 'not= '!=} f) (some types args))]
    (into [(list* f (map #(as-typed schema attribute %) args))] more)
    clause))

(defn- apart
  "The patterns of one list in which an entity has one value by two attributes, as in
  `[?e :boss ?f] [?e :friend ?f]`: the second value gets a name of its own, and is compared."
  [{:keys [fresh]} clauses]
  (loop [seen {} out [] left (seq clauses)]
    (if-let [[clause & more] left]
      (let [[source [e a x :as given]] (when (pattern? clause) (pattern-parts clause))
            known (get seen [e x])]
        (if (and (= 3 (count given)) (variable? e) (variable? x))
          (if (and known (not= known a))
            (let [other (fresh)]
              (recur seen (conj out (conj source e a other) [(list '= x other)]) more))
            (recur (assoc seen [e x] a) (conj out clause) more))
          (recur seen (conj out clause) more)))
      out)))

(defn- rewritten [context clauses fill?]
  (apart
   context
   (mapcat (fn [clause]
             (let [head (when (seq? clause) (first clause))]
               (cond
                 (pattern? clause) (compared context (named context clause fill?))
                 (and (vector? clause) (seq? (first clause))) [(typed-call context clause)]
                 (#{'and 'not} head)
                 [(apply list head (rewritten context (rest clause) fill?))]
                 (= 'not-join head)
                 [(list* head (second clause) (rewritten context (nnext clause) fill?))]
                 (= 'or head) [(alternatives context clause)]
                 (= 'or-join head)
                 [(list* head (second clause) (map #(branch context %) (nnext clause)))]
                 :else [clause])))
           clauses)))

(defn- types-of
  "The attributes of variables that are values of numbers in a class of their own."
  [schema clauses]
  (into {}
        (keep (fn [clause]
                (when (pattern? clause)
                  (let [[_ [_ a x]] (pattern-parts clause)]
                    (when (and (variable? x)
                               (#{:db.type/bigint :db.type/bigdec}
                                (get-in schema [a :db/valueType])))
                      [x a])))))
        clauses))

(defn- context-of [schema clauses]
  (let [n (volatile! 0)]
    {:schema schema
     :types (types-of schema clauses)
     :fresh #(symbol (str "?tidegate-" (vswap! n inc)))}))

(defn- corrected-rules [schema rules]
  (let [rules (if (string? rules) (edn/read-string rules) rules)]
    (if (and (sequential? rules) (every? #(and (sequential? %) (seq %)) rules))
      (mapv (fn [[head & clauses]]
              (into [head] (rewritten (context-of schema clauses) clauses false)))
            rules)
      rules)))

(defn- corrected [schema {:keys [where] :as given} fill?]
  (if (sequential? where)
    (assoc given :where (rewritten (context-of schema where) where fill?))
    given))

(defn- corrected-inputs [schema {:keys [in where]} inputs]
  (let [types (if (sequential? where) (types-of schema where) {})]
    (map (fn [name x]
           (cond
             (= '% name) (corrected-rules schema x)
             (types name) (as-typed schema (types name) x)
             (and (vector? name) (= '... (peek name)) (types (first name)) (sequential? x))
             (mapv #(as-typed schema (types (first name)) %) x)
             :else x))
         (concat (rest in) (repeat nil)) inputs)))

(defn- empty-answer? [found]
  (or (nil? found) (and (coll? found) (empty? found))
      (and (instance? java.util.Collection found) (.isEmpty ^java.util.Collection found))))

(defn- with-inputs
  "A query as a map, with `:in $` if it has no `:in`: Datalevin leaves the database out where no clause
  reads it, and then refuses the one that it is given."
  [query]
  (merge {:in ['$]} (parts query)))

(defn as-asked
  "A query as the planner of a local database is asked it."
  [conn query]
  (corrected (d/schema conn) (with-inputs query) true))

(defn ask
  "The answer of a query, and whether facts answer it that the planner did not find."
  [conn query inputs remote?]
  (let [db (d/db conn)
        given (with-inputs query)
        ;; The types of a server's attributes are not asked for: that would be another request.
        schema (if remote? {} (d/schema conn))
        inputs (corrected-inputs schema given inputs)
        found (apply d/q (corrected schema given (not remote?)) db inputs)
        facts (when (and (not remote?) (sequential? (:where given)) (empty-answer? found))
                (cross-check/answer db schema given inputs))]
    (if facts [(first facts) true] [found false])))
