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
  * A single input is written in place of its variable, which some clauses do not stand.
  * A constant or an input that is no entity, as in `[1.5 :name ?n]`, finds all of them, and a value of
    another type than the attribute's is cut to it, or fails by its class. Both are refused.

  `scopes` corrects what is wrong with names, `planner` replaces functions of the planner, and a query
  that calls rules is answered by `cross-check`. A server plans by itself, so there only what a text
  can say helps, and the facts: a query with rules or an `or-join` is answered from them."
  (:require
   [clojure.edn :as edn]
   [clojure.string :as str]
   [datalevin.core :as d]
   [tidegate.cross-check :as cross-check]
   [tidegate.scopes :as scopes :refer [variable?]]
   [tidegate.values :refer [refuse]]))

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

(defn- pattern?
  "Whether a clause is a data pattern; one of another source than `$` is left as it is."
  [clause]
  (and (vector? clause)
       (not (seq? (first clause)))
       (or (= '$ (first clause))
           (not (and (symbol? (first clause)) (= \$ (first (name (first clause)))))))))

(defn- entity-of-text
  "The number of an entity, or a reference to it as EDN or JSON, such as `[:name \"Ann\"]`; nil for
  another text."
  [text]
  (if (str/starts-with? text "[")
    (let [[attribute :as found] (try (edn/read-string text) (catch RuntimeException _ nil))]
      (when (and (vector? found) (= 2 (count found)))
        (cond
          (keyword? attribute) found
          (and (string? attribute) (re-matches #":[^\s:]+" attribute))
          (assoc found 0 (keyword (subs attribute 1))))))
    (parse-long text)))

(def ^:private readers
  "How a text is read that stands for a value of another type."
  {:db.type/long parse-long :db.type/ref entity-of-text :db.type/double parse-double
   :db.type/float parse-double :db.type/boolean parse-boolean :db.type/uuid parse-uuid
   :db.type/bigint #(when (re-matches #"[-+]?[0-9]{1,4000}" %) (biginteger (bigint %)))
   :db.type/bigdec #(when (re-matches #"[-+]?[0-9]{1,4000}(\.[0-9]{1,4000})?" %) (bigdec %))
   :db.type/keyword #(when (re-matches #":[^\s:]+" %) (keyword (subs % 1)))
   :db.type/instant #(try (java.util.Date/from (java.time.Instant/parse %))
                          (catch java.time.format.DateTimeParseException _ nil))})

(defn- whole? [x]
  (or (integer? x)
      (and (float? x) (== x (Math/rint x)) (< (abs x) 1e15))
      (and (decimal? x) (< (abs x) 1e30) (== x (bigint x)))))

(defn- of-64-bits? [x] (and (integer? x) (<= Long/MIN_VALUE x Long/MAX_VALUE)))

(defn- number-as
  "A number as the class that a type has, if nothing is lost: `80.0` is 80 where whole numbers are."
  [type x]
  (case type
    (:db.type/long :db.type/ref) (if (and (whole? x) (of-64-bits? (bigint x))) (long x) x)
    :db.type/bigint (if (whole? x) (biginteger (bigint x)) x)
    (:db.type/double :db.type/float) (if (and (integer? x) (<= (abs x) 9007199254740992)) (double x) x)
    :db.type/bigdec (if (and (float? x) (or (Double/isNaN x) (Double/isInfinite x))) x (bigdec x))
    x))

(defn as-typed
  "A number that is written for an attribute of another class of numbers, as that class, and a text for
  an attribute that has no texts as what it says: clients write values of all types as texts."
  [schema attribute x]
  (let [type (when (keyword? attribute) (get-in schema [attribute :db/valueType]))]
    (cond
      (number? x) (number-as type x)
      (string? x) (if-let [reads (readers type)] (let [found (reads x)] (if (nil? found) x found)) x)
      :else x)))

(defn- reference? [x]
  (or (keyword? x) (and (sequential? x) (= 2 (count x)) (keyword? (first x)))))

(defn- entity? [x] (or (reference? x) (of-64-bits? x)))

(defn- of-type?
  "Whether a value can be one of a type, as far as its class says."
  [type x]
  (case type
    :db.type/ref (entity? x)
    :db.type/long (of-64-bits? x)
    :db.type/bigint (integer? x)
    (:db.type/double :db.type/float :db.type/bigdec) (number? x)
    :db.type/string (string? x)
    :db.type/boolean (boolean? x)
    :db.type/keyword (keyword? x)
    :db.type/symbol (symbol? x)
    :db.type/instant (inst? x)
    :db.type/uuid (uuid? x)
    :db.type/tuple (sequential? x)
    ::attribute (keyword? x)
    true))

(defn- with-ids
  "A schema in which the places of entities and of attributes have a type as well."
  [schema]
  (assoc schema :db/id {:db/valueType :db.type/ref} ::attribute {:db/valueType ::attribute}))

(defn- short-form [x]
  (let [text (pr-str x)]
    (if (> (count text) 80) (str (subs text 0 80) "…") text)))

(defn check-entity
  "What stands for an entity, if it can be one."
  [x]
  (let [x (if (number? x) (number-as :db.type/ref x) x)]
    (when-not (entity? x)
      (refuse :invalid-request
              (str (short-form x) " stands for an entity here, and is none: an entity is its number, or"
                   " a reference to it such as [\":name\", \"Ann\"].")))
    x))

(defn entity-number
  "The number of what stands for an entity; refuses a reference to none."
  [db x]
  (let [x (check-entity x)]
    (if (reference? x)
      (or (d/entid db x) (refuse :invalid-request (str "There is no entity " (short-form x) ".")))
      x)))

(defn- checked
  "A constant or an input as its attribute, or `:db/id`, keeps its like."
  [schema attribute x]
  (let [now (as-typed schema attribute x)
        type (when (keyword? attribute) (get-in schema [attribute :db/valueType]))]
    (cond
      (= :db/id attribute) (check-entity now)
      (of-type? type now) now
      (= ::attribute attribute)
      (refuse :invalid-request
              (str (short-form x) " stands for an attribute here: that is a keyword, such as :name."))
      :else (refuse :invalid-request
                    (str (short-form x) " stands for a value of " attribute ", whose type is "
                         (name type) ": no entity has it.")))))

(def ^:private plain-types
  "The types of which Datalevin would cut a value to what it keeps, without a word: 1.5 to 1, any text
  to true."
  #{:db.type/long :db.type/bigint :db.type/double :db.type/float :db.type/bigdec :db.type/boolean})

(defn as-stored
  "A value that a transaction adds, retracts or compares, as its attribute keeps it; several in a
  collection. Refuses one of which something would be lost."
  [schema attribute x]
  (let [type (when (keyword? attribute) (get-in schema [attribute :db/valueType]))]
    (cond
      (or (nil? x) (not (plain-types type))) x
      (set? x) (into #{} (map #(as-stored schema attribute %)) x)
      (sequential? x) (mapv #(as-stored schema attribute %) x)
      :else
      (let [now (as-typed schema attribute x)]
        (when-not (of-type? type now)
          (refuse :invalid-request
                  (str (short-form x) " is no value of " attribute ", whose type is " (name type)
                       ". Nothing was changed.")))
        now))))

(defn as-given
  "A value that a client gives as JSON, as its attribute keeps its like: a text that begins with a colon
  is a keyword only where the attribute may have keywords."
  [schema attribute x]
  (if (and (keyword? x) (= :db.type/string (get-in schema [attribute :db/valueType])))
    (str x)
    (as-typed schema attribute x)))

(defn- pattern-parts [clause]
  (if (= '$ (first clause)) [['$] (rest clause)] [[] clause]))

(def ^:private of-entities
  "The functions whose second argument is an entity."
  '#{get-else get-some get-some-else missing?})

(defn- check-patterns
  "Refuse a constant in a pattern that cannot be what it stands for."
  [schema clauses]
  (doseq [clause clauses]
    (cond
      (and (vector? clause) (seq? (first clause)))
      (let [[f asked & args] (first clause)]
        (when-not (symbol? f) (check-entity (first clause)))
        (when (and (of-entities f) (seq args) (not (symbol? (first args))))
          (checked schema :db/id (first args)))
        (when (and (= 'q f) (coll? asked))
          (let [{:keys [where]} (parts asked)]
            (when (sequential? where) (check-patterns schema where)))))

      (pattern? clause)
      (let [[_ [e a x & more]] (pattern-parts clause)]
        (when more
          (refuse :invalid-request
                  (str "The pattern " (short-form clause) " has more than an entity, an attribute and"
                       " a value: Datalevin keeps no transaction with a fact.")))
        (when-not (symbol? e) (checked schema :db/id e))
        (when-not (or (symbol? x) (< (count (second (pattern-parts clause))) 3))
          (checked schema a x)))

      (and (seq? clause) ('#{and or not} (first clause)))
      (check-patterns schema (rest clause))

      (and (seq? clause) ('#{or-join not-join} (first clause)))
      (check-patterns schema (nnext clause)))))

(defn- named [{:keys [fresh schema]} clause fill?]
  (let [[source [e a x & more :as given]] (pattern-parts clause)
        e (as-typed {:db/id {:db/valueType :db.type/ref}} :db/id e)
        blank? (or (= 2 (count given)) (and (= 3 (count given)) (= '_ x)))]
    (cond
      (and fill? blank? (keyword? a)) (conj (vec source) e a (fresh))
      (> (count given) 2) (into (vec source) (list* e a (as-typed schema a x) more))
      :else (into (vec source) (cons e (rest given))))))

(defn- compared
  "A pattern in which each variable stands once, and the clauses that compare."
  [{:keys [fresh]} clause]
  (loop [seen #{} out [] equal [] left (seq clause)]
    (if-let [[x & more] left]
      (if (and (variable? x) (seen x))
        (let [other (fresh)]
          (recur seen (conj out other) (conj equal (scopes/equal x other)) more))
        (recur (conj seen x) (conj out x) equal more))
      (into [out] equal))))

(defn- rule-call? [clause]
  (and (seq? clause) (symbol? (first clause))
       (not ('#{and or not or-join not-join} (first clause)))
       (not= \$ (first (name (first clause))))))

(declare rewritten places)

(defn- branch
  "A branch of an `or` as one clause. Its variables are given, so no blank gets a name there."
  [context clause]
  (let [clauses (rewritten context [clause] false)]
    (if (= 1 (count clauses)) (first clauses) (apply list 'and clauses))))

(defn- alternatives
  "An `or`, of which all branches have the same variables: if one has another now, they are named."
  [context [head & branches]]
  (let [now (map #(branch context %) branches)
        variables (scopes/variables (first branches))]
    (if (= now branches) (list* head now) (list* 'or-join (vec variables) now))))

(defn- typed-call
  "A call that compares a variable of a `bigint` or `bigdec` attribute with whole numbers."
  [{:keys [types schema]} [[f & args :as call] & more :as clause]]
  (if-let [attribute (and (#{'< '> '<= '>= '= '== 'not= '!=} f) (some types args))]
    (into [(list* f (map #(as-typed schema attribute %) args))] more)
    clause))

(defn- compares-itself? [[[f & args]]]
  (and (#{'< '> '<= '>= '= '== 'not= '!=} f) (some variable? args) (not (apply distinct? args))))

(defn- nested
  "A query in a query: an input that is an entity there is bound by a function first, since the engine
  takes one that is none for any entity."
  [{:keys [fresh]} [[q asked & args] & binding]]
  (let [{:keys [in where] :as given} (parts asked)
        entities (into #{} (keep (fn [[x a]] (when (= :db/id a) x))) (places {} where))
        names (into {} (map (fn [x] [x (fresh)])) (filter entities (scopes/variables in)))]
    (into [(list* q (assoc given
                           :in (scopes/renamed names in)
                           :where (into (mapv (fn [[x now]] [(list 'identity now) x]) names) where))
                  args)]
          binding)))

(defn- call-clauses
  "A call as clauses: the planner cannot compare a variable with itself, as in `[(<= ?x ?x)]`."
  [{:keys [fresh] :as context} [[f asked] :as clause]]
  (cond
    (compares-itself? clause)
    (let [[[f x & more] & binding] (typed-call context clause)
          others (repeatedly (count more) fresh)]
      (conj (mapv (fn [x other] [(list 'identity x) other]) more others)
            (into [(list* f x others)] binding)))

    (and (= 'q f) (coll? asked) (:in (parts asked))) [(nested context clause)]
    :else [(typed-call context clause)]))

(defn- apart
  "The patterns of one list in which an entity has one value by two attributes, as in
  `[?e :boss ?f] [?e :friend ?f]`: the second value gets a name of its own, and is compared."
  [{:keys [fresh]} clauses]
  (loop [seen {} out [] left (seq clauses)]
    (if-let [[clause & more] left]
      (let [[source [e a x :as given]] (when (pattern? clause) (pattern-parts clause))
            known (get seen [e x])]
        (if (and (= 3 (count given)) (not= '_ e) (variable? x))
          (if (and known (not= known a))
            (let [other (fresh)]
              (recur seen (conj out (conj source e a other) (scopes/equal x other)) more))
            (recur (assoc seen [e x] a) (conj out clause) more))
          (recur seen (conj out clause) more)))
      out)))

(defn- rewritten [context clauses fill?]
  (scopes/in-order
   (apart
    context
    (mapcat (fn [clause]
             (let [head (when (seq? clause) (first clause))]
               (cond
                 (pattern? clause) (compared context (named context clause fill?))
                 (and (vector? clause) (seq? (first clause))) (call-clauses context clause)
                 (#{'and 'not} head)
                 [(apply list head (rewritten context (rest clause) fill?))]
                 (= 'not-join head)
                 [(scopes/with-own-names
                   (:fresh context)
                   (list* head (second clause) (rewritten context (nnext clause) fill?)))]
                 (= 'or head) [(alternatives context clause)]
                 (= 'or-join head)
                 [(scopes/with-own-names
                   (:fresh context)
                   (list* head (second clause) (map #(branch context %) (nnext clause))))]
                 (rule-call? clause) (scopes/call-apart (:fresh context) clause)
                 :else [clause])))
           clauses))))

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

(defn- places
  "The variables of clauses, wherever these are, each with the attribute that it is a value of; of an
  entity `:db/id`, of an attribute `::attribute`. `of-rules` has the same of the arguments of rules."
  [of-rules clauses]
  (mapcat (fn [clause]
            (cond
              (pattern? clause)
              (let [[_ parts] (pattern-parts clause)]
                (filter (comp variable? first) (map vector parts [:db/id ::attribute (second parts)])))

              (and (vector? clause) (seq? (first clause)))
              (let [[f _ e] (first clause)]
                (when (and (of-entities f) (variable? e)) [[e :db/id]]))

              (rule-call? clause)
              (mapcat (fn [x found] (when (variable? x) (map #(vector x %) found)))
                      (rest clause) (map (fn [n] (get-in of-rules [(first clause) n]))
                                         (range (count (rest clause)))))

              (seq? clause) (places of-rules (filter sequential? (rest clause)))))
          clauses))

(defn- places-of-rules
  "For each rule, and each of its arguments by number, the attributes that it is a value of."
  [rules]
  (loop [found {}]
    (let [now (reduce (fn [found [[rule & args] & clauses]]
                        (let [own (group-by first (places found clauses))]
                          (reduce (fn [found [n x]]
                                    (update-in found [rule n] (fnil into #{}) (map second (own x))))
                                  found (map-indexed vector (flatten args)))))
                      found rules)]
      (if (= now found) found (recur now)))))

(defn- value-types
  "An attribute for each variable that is a value of one type alone, and `:db/id` for each that a
  pattern has as its entity."
  [schema of-rules clauses]
  (let [entities (into #{} (keep (fn [[x a]] (when (= :db/id a) x))) (places {} clauses))]
    (into {}
          (keep (fn [[x found]]
                  (cond
                    (= 1 (count (distinct (map #(get-in schema [(second %) :db/valueType]) found))))
                    [x (second (first found))]
                    (entities x) [x :db/id])))
          (group-by first (places of-rules clauses)))))

(defn- new-names
  "A function that makes names which a query does not have."
  []
  (let [n (volatile! 0)]
    #(symbol (str "?tidegate-" (vswap! n inc)))))

(defn- context-of [schema fresh clauses]
  {:schema schema :types (types-of schema clauses) :fresh fresh})

(defn- corrected-rules [schema fresh rules]
  (let [rules (if (string? rules) (edn/read-string rules) rules)]
    (doseq [rule rules :when (sequential? rule)] (check-patterns schema (rest rule)))
    (if (scopes/rules? rules)
      (mapv (fn [[head & clauses]]
              (into [head] (rewritten (context-of schema fresh clauses) clauses false)))
            (scopes/with-own-heads fresh rules))
      rules)))

(defn- two-values?
  "Whether clauses give one attribute of an entity two values, as in `[?e :tag ?t] [?e :tag \"red\"]`, or
  name an entity, which an input may be as well."
  [clauses]
  (let [of (keep (fn [clause]
                   (when (pattern? clause) (let [[_ [e a]] (pattern-parts clause)] [e a])))
                 clauses)]
    (or (not= (count of) (count (distinct of)))
        (not-every? symbol? (map first of)))))

(defn- asked-together
  "A query and its inputs, in which single values are collections of one. The engine writes a single
  value in place of its variable: it cannot read `(or-join [5] …)` then, finds no variable in
  `(not [5 :age _])`, and of two values of one attribute it takes
  one."
  [{:keys [in where] :as given} inputs]
  (let [single? (fn [name x] (and (variable? name) (some? x) (not (coll? x))))]
    (if (and (sequential? where) (or (some seq? where) (two-values? where)))
      [(assoc given :in (into [(first in)]
                              (map (fn [name x] (if (single? name x) [name '...] name))
                                   (rest in) inputs)))
       (map (fn [name x] (if (single? name x) [x] x)) (rest in) inputs)]
      [given inputs])))

(defn- corrected [schema fresh {:keys [where] :as given} fill?]
  (if (sequential? where)
    (assoc given :where (rewritten (context-of schema fresh where) where fill?))
    given))

(defn- bound
  "An input with each of its values as the variable needs it that the binding gives it to."
  [schema types binding x]
  (cond
    (types binding) (checked schema (types binding) (as-given schema (types binding) x))
    (not (and (vector? binding) (sequential? x))) x
    (or (= '... (peek binding)) (and (= 1 (count binding)) (vector? (first binding))))
    (mapv #(bound schema types (first binding) %) x)
    :else (into (mapv #(bound schema types %1 %2) binding x) (drop (count binding) x))))

(defn- corrected-inputs [schema fresh {:keys [in where]} inputs]
  (let [schema (with-ids schema)
        rules (some (fn [[binding x]] (when (= '% binding) x)) (map vector (rest in) inputs))
        rules (if (string? rules) (edn/read-string rules) rules)
        of-rules (if (scopes/rules? rules) (places-of-rules rules) {})
        types (if (sequential? where) (value-types schema of-rules where) {})]
    (map (fn [binding x]
           (if (= '% binding) (corrected-rules schema fresh x) (bound schema types binding x)))
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
  (corrected (d/schema conn) (new-names) (with-inputs query) true))

(defn- calls-rules? [where]
  (some #(and (seq? %) (or (rule-call? %) (calls-rules? (rest %)))) where))

(defn- by-planner [conn schema given inputs remote?]
  (let [fresh (new-names)
        [asked values] (asked-together (corrected schema fresh given (not remote?))
                                       (corrected-inputs schema fresh given inputs))]
    (apply d/q asked (d/db conn) values)))

(defn- typed-inputs [schema given inputs]
  (map (fn [name x now] (if (= '% name) x now))
       (rest (:in given)) inputs (corrected-inputs schema (new-names) given inputs)))

(defn- has-or-join? [where]
  (some #(and (seq? %) (or (= 'or-join (first %)) (has-or-join? (rest %)))) where))

(defn ask
  "The answer of a query, and whether facts answer it that the planner did not find."
  [conn query inputs remote?]
  (let [given (with-inputs query)
        where (:where given)
        known? (sequential? where)
        by-facts? (and known? (or (calls-rules? where) (and remote? (has-or-join? where))))
        ;; The types of a server's attributes are another request, so they are asked for only where
        ;; its planner is not to be trusted.
        schema (if (and remote? (not by-facts?)) {} (d/schema conn))
        _ (when known? (check-patterns (with-ids schema) where))
        derived (when by-facts? (cross-check/answer-by-rules conn schema given
                                                 (typed-inputs schema given inputs) remote?))]
    (if derived
      [(first derived) false]
      (let [found (by-planner conn schema given inputs remote?)
            facts (when (and known? (not remote?) (empty-answer? found))
                    (cross-check/answer conn schema given (typed-inputs schema given inputs)))]
        (if facts [(first facts) true] [found false])))))
